// results.h: what was measured, as lines for people and as one JSON object.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cublas.h"
#include "data_sheet.h"
#include "timed_call.h"

namespace moe::bench {

// One call on one side.
struct Result {
  std::string what;  // "GEMM1"
  std::string side;  // "mine", "solution" or the name of an alternative
  double median_us = 0.0;
  double p10_us = 0.0;
  double p90_us = 0.0;
  size_t runs = 0;
  double flops = 0.0;
  double bytes = 0.0;
  bool fp8 = false;
  int64_t rows = 0;
  int64_t padded_rows = 0;
  std::string verdict;  // "right", or what is wrong with it
  std::vector<protocol::KernelUse> kernels;

  bool right() const { return verdict == "right"; }
  double tflops() const { return median_us > 0.0 ? flops / median_us * 1e-6 : 0.0; }
};

struct Run {
  std::string stage;
  Shape shape = {};
  std::string device;
  std::optional<DataSheet> sheet;
  CublasTimes cublas;
  Capacity capacity;
  std::vector<std::string> notes;  // busy, throttled
  std::vector<Result> results;
};

// The median and its spread.
Result result_of(const TimedCall& call, const std::string& side, std::vector<float> us);

// Faster than the data sheet allows: says so in the verdict, and the time counts for nothing.
// `hidden_bytes` need not have passed through memory (outputs may stay in a cache).
void refuse_if_too_fast(const std::optional<DataSheet>& sheet, double hidden_bytes, Result& result);

// What cuBLAS needs for the dense GEMMs of a call; 0 where there is no such thing.
double dense_us(const CublasTimes& cublas, const std::string& what);

std::string text_of(const Run& run);
std::string json_of(const Run& run);

}  // namespace moe::bench
