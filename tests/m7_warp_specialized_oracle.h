// The meaning of m7_warp_specialized in double, on the same bf16 operands: both GEMMs, row p of the
// output belonging to entry p of the sorted table.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "judge/bf16.h"
#include "judge/compare.h"

namespace moe::oracle {

inline constexpr int kSortedBlock = 128;  // rows of the table in a block, block_m

struct SortedProblem {
  bool is_gemm1 = true;
  int num_tokens = 0;
  int top_k = 0;
  int num_experts = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  std::vector<int32_t> topk_ids;          // [T, K]
  std::vector<judge::Bf16> a;             // x [T, H], or h [capacity, I]
  std::vector<judge::Bf16> w;             // w13 [E, 2I, H], or w2 [E, H, I]
  std::vector<float> topk_weights;        // [T, K]; empty in GEMM1
  std::vector<int32_t> sorted_token_ids;  // [capacity]
  std::vector<int32_t> expert_ids;        // [capacity / 128]
  int32_t num_tokens_post_padded = 0;
  bool exact = false;       // everything but the last rounding is exact in fp32
  bool stale_tail = false;  // the tables behind the end hold an older, larger batch
  int first_expert = 0;     // w holds the experts from this one on, a the rows from
  int64_t first_row = 0;    // that one on (sparse cases)

  int num_ids() const { return num_tokens * top_k; }
  int capacity() const { return static_cast<int>(sorted_token_ids.size()); }
  int columns() const { return is_gemm1 ? intermediate_size : hidden_size; }
  int depth() const { return is_gemm1 ? hidden_size : intermediate_size; }
  int rows_of_w() const { return is_gemm1 ? 2 * intermediate_size : hidden_size; }
  // Which expert works on row `row` of the table, -1 for none.
  int expert_of(int row) const {
    if (row >= num_tokens_post_padded) return -1;
    const int32_t e = expert_ids[static_cast<size_t>(row / kSortedBlock)];
    return e >= 0 && e < num_experts ? e : -1;
  }
  int flat_id(int row) const { return sorted_token_ids[static_cast<size_t>(row)]; }
  // Rows whose output is specified. Others are padding, or must stay as they were.
  bool is_real(int row) const { return expert_of(row) >= 0 && flat_id(row) < num_ids(); }
  // Which row of a belongs to a real row of the table.
  int64_t row_of_a(int row) const { return is_gemm1 ? flat_id(row) / top_k : row; }
};

// The sum for one row of a and one row of w[expert]; NaN where there is no such row.
double dot(const SortedProblem& p, int64_t row_of_a, int expert, int row_of_w);

// The sum behind row `row` of the table and row `row_of_w` of its expert's matrix. Mistakes put
// other functions in its place.
using SumOf = std::function<double(int row, int row_of_w)>;
SumOf right_sums(const SortedProblem& p);

// What an epilogue makes of the sums: of gate and up in GEMM1, of one sum and 0 in GEMM2.
using Epilogue = std::function<double(int row, double sum, double up)>;
Epilogue right_epilogue(const SortedProblem& p);

// [capacity, columns]: real rows from sums and epilogue, all others kUntouched.
judge::Matrix sorted_gemm(const SortedProblem& p, const SumOf& sum, const Epilogue& epilogue);
judge::Matrix sorted_gemm(const SortedProblem& p);

}  // namespace moe::oracle
