// The C interface of m3: see moe_drills.h.
#include <drills/m3_weighted_epilogue.h>

#include "call.h"

namespace solution = moe::solution;
using moe::library::answer;
using moe::library::are_rows;
using moe::library::are_sizes;
using moe::library::bf16;
using moe::library::kUnknownRows;
using moe::library::refused;
using moe::library::rows_of;
using moe::library::stream_of;

int moe_drills_m3_silu_and_mul(moe_drills_bf16* h,
                               const moe_drills_bf16* gate_up,
                               int num_ids,
                               int intermediate_size,
                               void* stream) {
  return answer("m3_silu_and_mul", solution::refuse_silu_and_mul, solution::silu_and_mul, bf16(h),
                bf16(gate_up), num_ids, intermediate_size, stream_of(stream));
}

int moe_drills_m3_grouped_gemm_weighted(moe_drills_bf16* out,
                                        const moe_drills_bf16* a,
                                        const moe_drills_bf16* w,
                                        const float* topk_weights,
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
  if (!are_rows(rows)) return refused("m3_grouped_gemm_weighted", kUnknownRows);
  return answer("m3_grouped_gemm_weighted", solution::refuse_grouped_gemm_weighted,
                solution::grouped_gemm_weighted, bf16(out), bf16(a), bf16(w), topk_weights,
                sorted_token_ids, expert_ids, num_tokens_post_padded, num_tokens, top_k,
                num_experts, n, depth, block_m, rows_of(rows), stream_of(stream));
}

int moe_drills_m3_combine(moe_drills_bf16* out,
                          const moe_drills_bf16* y,
                          const int32_t* topk_ids,
                          int num_tokens,
                          int top_k,
                          int hidden_size,
                          int num_experts,
                          void* stream) {
  return answer("m3_combine", solution::refuse_combine, solution::combine, bf16(out), bf16(y),
                topk_ids, num_tokens, top_k, hidden_size, num_experts, stream_of(stream));
}

size_t moe_drills_m3_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (!are_sizes(num_tokens, num_experts, top_k)) return 0;
  return solution::moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size,
                                             intermediate_size);
}

int moe_drills_m3_moe_layer(moe_drills_bf16* out,
                            const moe_drills_bf16* x,
                            const float* logits,
                            const moe_drills_bf16* w13,
                            const moe_drills_bf16* w2,
                            int num_tokens,
                            int num_experts,
                            int top_k,
                            int hidden_size,
                            int intermediate_size,
                            int renormalize,
                            void* workspace,
                            size_t workspace_bytes,
                            void* stream) {
  return answer("m3_moe_layer", solution::refuse_moe_layer, solution::moe_layer, bf16(out), bf16(x),
                logits, bf16(w13), bf16(w2), num_tokens, num_experts, top_k, hidden_size,
                intermediate_size, renormalize != 0, workspace, workspace_bytes, stream_of(stream));
}
