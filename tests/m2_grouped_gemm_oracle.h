// The meaning of m2_grouped_gemm in double, on the same bf16 operands.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "judge/bf16.h"
#include "judge/compare.h"

namespace moe::oracle {

struct GemmProblem {
  int num_tokens = 0;
  int top_k = 0;
  int num_experts = 0;
  int n = 0;
  int depth = 0;
  int block_m = 0;
  bool rows_are_slots = false;
  std::vector<int32_t> topk_ids;          // [T, K]
  std::vector<judge::Bf16> a;             // [T, D] or [T*K, D]
  std::vector<judge::Bf16> w;             // [E, N, D]
  std::vector<int32_t> sorted_token_ids;  // [capacity]
  std::vector<int32_t> expert_ids;        // [capacity / block_m]
  int32_t num_tokens_post_padded = 0;
  bool exact = false;       // sums are exact integers
  bool stale_tail = false;  // the tables behind the end hold an older, larger batch
  int first_expert = 0;     // w holds the experts from this one on (sparse cases)

  int num_ids() const { return num_tokens * top_k; }
  int rows_of_a() const { return rows_are_slots ? num_ids() : num_tokens; }
  bool routed(int flat_id) const {
    const int32_t e = topk_ids[static_cast<size_t>(flat_id)];
    return e >= 0 && e < num_experts;
  }
};

// sum over d in [0, depth) of a[row][d] * w[expert][column][d]; NaN where row is not a row of A.
double dot(const GemmProblem& p, int64_t row, int expert, int column, int depth);

// out [T*K, N]; rows without a routed flat id are kUntouched.
judge::Matrix grouped_gemm(const GemmProblem& p);

}  // namespace moe::oracle
