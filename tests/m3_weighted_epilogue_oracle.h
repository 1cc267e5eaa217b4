// The meaning of m3_weighted_epilogue in double, on the same bf16 operands. The layer has a file of
// its own, layer_oracle.h.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/bf16.h"
#include "judge/compare.h"
#include "m2_grouped_gemm_oracle.h"

namespace moe::oracle {

// g / (1 + e^-g), in a form that is exact at both ends.
double silu(double gate);

struct SiluProblem {
  int num_ids = 0;
  int intermediate_size = 0;
  bool exact = false;
  std::vector<judge::Bf16> gate_up;  // [T*K, 2I]

  double value(int64_t row, int64_t column) const {
    return static_cast<double>(
        judge::to_float(gate_up[static_cast<size_t>(row * 2 * intermediate_size + column)]));
  }
};

// h [T*K, I].
judge::Matrix silu_and_mul(const SiluProblem& p);

struct WeightedProblem {
  GemmProblem gemm;
  std::vector<float> topk_weights;  // [T, K]; NaN where not routed
};

// out [T*K, N]; rows without a routed flat id are kUntouched.
judge::Matrix grouped_gemm_weighted(const WeightedProblem& p);

struct CombineProblem {
  int num_tokens = 0;
  int top_k = 0;
  int num_experts = 0;
  int hidden_size = 0;
  bool exact = false;
  std::vector<int32_t> topk_ids;  // [T, K]
  std::vector<judge::Bf16> y;     // [T*K, H]

  bool routed(int flat_id) const {
    const int32_t e = topk_ids[static_cast<size_t>(flat_id)];
    return e >= 0 && e < num_experts;
  }
  double value(int64_t row, int64_t column) const {
    return static_cast<double>(judge::to_float(y[static_cast<size_t>(row * hidden_size + column)]));
  }
};

// out [T, H].
judge::Matrix combine(const CombineProblem& p);

}  // namespace moe::oracle
