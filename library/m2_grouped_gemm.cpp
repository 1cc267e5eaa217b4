// The C interface of m2: see moe_drills.h.
#include <drills/m2_grouped_gemm.h>

#include "call.h"

namespace solution = moe::solution;
using moe::library::answer;
using moe::library::are_rows;
using moe::library::bf16;
using moe::library::kUnknownRows;
using moe::library::refused;
using moe::library::rows_of;
using moe::library::stream_of;

int moe_drills_m2_grouped_gemm(moe_drills_bf16* out,
                               const moe_drills_bf16* a,
                               const moe_drills_bf16* w,
                               const int32_t* sorted_token_ids,
                               const int32_t* expert_ids,
                               const int32_t* num_tokens_post_padded,
                               int num_tokens,
                               int top_k,
                               int num_experts,
                               int n,
                               int depth,
                               int block_m,
                               int rows,
                               void* stream) {
  if (!are_rows(rows)) return refused("m2_grouped_gemm", kUnknownRows);
  return answer("m2_grouped_gemm", solution::refuse_grouped_gemm, solution::grouped_gemm, bf16(out),
                bf16(a), bf16(w), sorted_token_ids, expert_ids, num_tokens_post_padded, num_tokens,
                top_k, num_experts, n, depth, block_m, rows_of(rows), stream_of(stream));
}
