// What the calibrations share: sums of a GEMM in the orders of GPUs and with mistakes, SwiGLU as
// kernels compute it, the problems of a suite's cases.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "../judge/bf16.h"
#include "../judge/fp32.h"
#include "../judge/random.h"
#include "../m2_grouped_gemm_oracle.h"
#include "../m3_weighted_epilogue_oracle.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {

inline constexpr uint64_t kSeeds[] = {1, 2};

inline const char* name_of(Order order) {
  constexpr const char* kNames[] = {"forward",       "backward",          "tree",
                                    "four partials", "tensor core tiles", "truncating tensor core"};
  return kNames[static_cast<int>(order)];
}

inline double as_bf16(double value) {
  return static_cast<double>(to_float(to_bf16(value)));
}

inline double as_float(double value) {
  return static_cast<double>(static_cast<float>(value));
}

// Stored without rounding: the lower half of an fp32 value dropped.
inline Bf16 truncated_bf16(double value) {
  return static_cast<Bf16>(to_fp32(value) >> 16);
}

using Sum = std::function<double(const std::vector<double>& products)>;

inline Sum in_order(Order order) {
  return [order](const std::vector<double>& products) { return sum_in_order(products, order); };
}

// The accumulator rounded to bf16 after every `step` terms.
inline Sum rounded_each(size_t step) {
  return [step](const std::vector<double>& products) {
    double sum = 0.0;
    for (size_t i = 0; i < products.size(); ++i) {
      sum += products[i];
      if ((i + 1) % step == 0) sum = as_bf16(sum);
    }
    return sum;
  };
}

// The last `count` terms missing.
inline Sum without_last(size_t count) {
  return [count](const std::vector<double>& products) {
    double sum = 0.0;
    for (size_t i = 0; i + count < products.size(); ++i) sum += products[i];
    return sum;
  };
}

// All sums of a GEMM, before any epilogue; 0 where not routed.
inline std::vector<double> gemm_sums(const oracle::GemmProblem& p, const Sum& sum) {
  const auto depth = static_cast<size_t>(p.depth);
  const auto n = static_cast<size_t>(p.n);
  std::vector<double> sums;
  std::vector<double> products(depth);
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    const auto row = static_cast<size_t>(p.rows_are_slots ? flat_id : flat_id / p.top_k);
    for (size_t column = 0; column < n; ++column) {
      if (!p.routed(flat_id)) {
        sums.push_back(0.0);
        continue;
      }
      const auto expert = static_cast<size_t>(p.topk_ids[static_cast<size_t>(flat_id)]);
      const size_t w = (expert * n + column) * depth;
      for (size_t d = 0; d < depth; ++d) {
        products[d] = static_cast<double>(to_float(p.a[row * depth + d])) *
                      static_cast<double>(to_float(p.w[w + d]));
      }
      sums.push_back(sum(products));
    }
  }
  return sums;
}

inline std::vector<Bf16> stored(const std::vector<double>& values) {
  std::vector<Bf16> out;
  for (const double value : values) out.push_back(to_bf16(value));
  return out;
}

inline std::vector<uint8_t> routed_ids(const oracle::GemmProblem& p) {
  std::vector<uint8_t> routed;
  for (int id = 0; id < p.num_ids(); ++id) routed.push_back(p.routed(id) ? 1 : 0);
  return routed;
}

// Adds the problems of a suite's cases to `c`, each with some seeds.
template <class Case, size_t N, class Make, class Problem, class T>
void add_cases(const Case (&cases)[N], Make make, Calibration<Problem, T>& c) {
  for (const Case& one : cases) {
    if (one.refused) continue;
    for (const uint64_t seed : kSeeds) {
      Problem p = make(one, mix(seed, one.name));
      const size_t size = c.want(p).values.size();
      if (size == 0) break;
      bool exact = false;
      if constexpr (requires { p.gemm.exact; }) {
        exact = p.gemm.exact;
      } else {
        exact = p.exact;
      }
      (exact ? c.exact : c.random).push_back(std::move(p));
      if (exact || size > 5000) break;
    }
  }
}

// ---- SwiGLU

using SiluFormula = double (*)(double gate, double up);

// fp32 as written in m3's solution, and with the fast functions' error of a few ulps.
inline double silu_in_fp32(double gate, double up) {
  const auto g = static_cast<float>(gate);
  return static_cast<double>(g / (1.0f + std::exp(-g)) * static_cast<float>(up));
}
inline double silu_fast(double gate, double up) {
  const auto g = static_cast<float>(gate);
  const float sum = 1.0f + std::exp(-g) * (1.0f + 0x1p-21f);
  const float reciprocal = sum == 1.0f ? 1.0f : 1.0f / sum * (1.0f - 0x1p-22f);
  return static_cast<double>(g * reciprocal * static_cast<float>(up));
}
// As m7's solution: four values share a reciprocal, gates below -20 count as -20. Exact data have
// gates so large that all four sums are 1, whose reciprocal is exact.
inline double silu_shared(double gate, double up) {
  const auto g = static_cast<float>(gate < -20.0 ? -20.0 : gate);
  const float sum = 1.0f + std::exp(-g) * (1.0f + 0x1p-21f);
  const float others = sum == 1.0f ? 1.0f : 1.75f * 1.5f * 1.25f;
  const float reciprocal =
      others * (1.0f / (sum * others) * (sum == 1.0f ? 1.0f : 1.0f - 0x1p-22f));
  return static_cast<double>(g * static_cast<float>(up) * reciprocal);
}
inline double silu_in_bf16(double gate, double up) {
  return as_bf16(oracle::silu(gate)) * up;
}

}  // namespace moe::judge
