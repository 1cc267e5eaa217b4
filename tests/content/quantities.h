// What notes say of bytes, times and rates, in their spelling, and the data sheet of the H200.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

#include "bench/data_sheet.h"
#include "bench/shapes.h"

namespace moe::content {

inline const bench::DataSheet kSheet = bench::data_sheet_of("NVIDIA H200").value();
inline constexpr double kMultiprocessors = 132;   // of an H200
inline constexpr double kFlopsPerClock = 4096;    // of one of them, bf16 dense
inline constexpr double kClockUnderLoad = 1.6e9;  // content/results/ladder.md

inline bench::Shape shape_named(const std::string& name) {
  for (const bench::Shape& shape : bench::kShapes) {
    if (name == shape.name) return shape;
  }
  return bench::kShapes[0];
}

inline std::string quantity(double value, int digits, const char* unit) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, unit);
  return text;
}

inline std::string mb(double bytes, int digits = 1) {
  return quantity(bytes / 1e6, digits, "MB");
}
inline std::string gb(double bytes, int digits = 2) {
  return quantity(bytes / 1e9, digits, "GB");
}
inline std::string kib(double bytes, int digits = 0) {
  return quantity(bytes / 1024, digits, "KiB");
}
inline std::string percent(double share, int digits = 0) {
  return quantity(share * 100, digits, "%");
}
inline std::string us(double seconds, int digits = 0) {
  return quantity(seconds * 1e6, digits, "us");
}
inline std::string ms(double seconds, int digits) {
  return quantity(seconds * 1e3, digits, "ms");
}
inline double memory_s(double bytes) {
  return bytes / (kSheet.terabytes_s * 1e12);
}
inline double compute_s(double flops) {
  return flops / (kSheet.bf16_tflops * 1e12);
}
// The clock at which the tensor cores' rate is that of the data sheet.
inline double sheet_clock() {
  return kSheet.bf16_tflops * 1e12 / (kMultiprocessors * kFlopsPerClock);
}

// Rows that one expert wastes on average: its rows are binomial, each token comes with K / E.
inline double wasted_rows(const bench::Shape& shape, int block_m) {
  const int tokens = shape.num_tokens;
  const double p = static_cast<double>(shape.top_k) / shape.num_experts;
  double mean = 0;
  for (int count = 0; count <= tokens; ++count) {
    const double log_chance = std::lgamma(tokens + 1.0) - std::lgamma(count + 1.0) -
                              std::lgamma(tokens - count + 1.0) + count * std::log(p) +
                              (tokens - count) * std::log1p(-p);
    mean += std::exp(log_chance) * ((block_m - count % block_m) % block_m);
  }
  return mean;
}

}  // namespace moe::content
