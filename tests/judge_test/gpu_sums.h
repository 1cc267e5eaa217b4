// Sums as GPUs form them: the ways in which right kernels differ. All take exact products, since a
// product of two bf16 or e4m3 values fits in fp32 (so fused or separate multiplication is the
// same).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace moe::judge {

enum class Order {
  kForward,    // one thread from first to last, in fp32
  kBackward,   // from last to first
  kTree,       // pairs, then pairs of pairs: a reduction by shuffles
  kSplit,      // four parts of the reduction, added at the end: split-K, or four warps
  kTiles,      // 16 products at once into the sum, rounded once: an ideal tensor core
  kTruncated,  // the same, but aligned to the largest of the 17 and cut off: see below
};

inline constexpr Order kOrders[] = {Order::kForward, Order::kBackward, Order::kTree,
                                    Order::kSplit,   Order::kTiles,    Order::kTruncated};

// Tensor cores align all terms to the largest and cut off what lies below its last bit. 23 bits
// behind the leading one is the least that is reported for bf16 operands (Volta, without guard
// bits); 13 is what DeepSeek-V3 reports for e4m3 operands on Hopper.
inline constexpr int kBitsOfBf16 = 23;
inline constexpr int kBitsOfE4m3 = 13;

// `value` towards zero to a multiple of `unit`, a power of two.
inline double cut_off(double value, double unit) {
  return static_cast<double>(static_cast<int64_t>(value / unit)) * unit;
}

inline double unit_of(double largest, int bits) {
  return std::ldexp(1.0, std::ilogb(largest) - bits);
}

// On top of `sum`, `step` products at a time.
inline double truncated_sum(const std::vector<double>& products,
                            int bits,
                            size_t step,
                            double sum = 0.0) {
  for (size_t first = 0; first < products.size(); first += step) {
    const size_t last = std::min(first + step, products.size());
    double largest = std::fabs(sum);
    for (size_t i = first; i < last; ++i) largest = std::max(largest, std::fabs(products[i]));
    if (largest == 0.0) continue;
    const double unit = unit_of(largest, bits);
    double total = cut_off(sum, unit);
    for (size_t i = first; i < last; ++i) total += cut_off(products[i], unit);
    sum = total == 0.0 ? 0.0 : cut_off(total, unit_of(total, bits));
  }
  return sum;
}

// The emulator's wgmma on e4m3: fp32 sums, which are cut off after each 32 products.
inline double emulated_sum(const std::vector<double>& products, double sum) {
  auto total = static_cast<float>(sum);
  for (size_t i = 0; i < products.size(); ++i) {
    total += static_cast<float>(products[i]);
    if ((i + 1) % 32 != 0 || total == 0.0f) continue;
    const auto value = static_cast<double>(total);
    total = static_cast<float>(cut_off(value, unit_of(value, kBitsOfE4m3)));
  }
  return static_cast<double>(total);
}

inline double sum_in_order(const std::vector<double>& products, Order order) {
  std::vector<float> terms(products.begin(), products.end());
  float sum = 0.0f;
  switch (order) {
    case Order::kForward:
      for (const float term : terms) sum += term;
      return static_cast<double>(sum);
    case Order::kBackward:
      for (auto term = terms.rbegin(); term != terms.rend(); ++term) sum += *term;
      return static_cast<double>(sum);
    case Order::kTree:
      for (size_t step = 1; step < terms.size(); step *= 2) {
        for (size_t i = 0; i + step < terms.size(); i += 2 * step) terms[i] += terms[i + step];
      }
      return terms.empty() ? 0.0 : static_cast<double>(terms[0]);
    case Order::kSplit: {
      float parts[4] = {};
      for (size_t i = 0; i < terms.size(); ++i) parts[i * 4 / terms.size()] += terms[i];
      return static_cast<double>((parts[0] + parts[1]) + (parts[2] + parts[3]));
    }
    case Order::kTiles:
      for (size_t first = 0; first < products.size(); first += 16) {
        double tile = static_cast<double>(sum);
        for (size_t i = first; i < std::min(first + 16, products.size()); ++i) tile += products[i];
        sum = static_cast<float>(tile);
      }
      return static_cast<double>(sum);
    case Order::kTruncated:
      return truncated_sum(products, kBitsOfBf16, 16);
  }
  return 0.0;
}

}  // namespace moe::judge
