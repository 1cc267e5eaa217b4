// The C interface of m5: see moe_drills.h.
#include <drills/m5_block_fp8.h>

#include "call.h"

namespace solution = moe::solution;
using moe::library::answer;
using moe::library::are_rows;
using moe::library::bf16;
using moe::library::e4m3;
using moe::library::kUnknownRows;
using moe::library::refused;
using moe::library::rows_of;
using moe::library::stream_of;

float moe_drills_m5_power_of_two_at_least(float scale) {
  return solution::power_of_two_at_least(scale);
}

int moe_drills_m5_quantize_rows(moe_drills_e4m3* codes,
                                float* scales,
                                const moe_drills_bf16* values,
                                int num_rows,
                                int depth,
                                int power_of_two,
                                void* stream) {
  return answer("m5_quantize_rows", solution::refuse_quantize_rows, solution::quantize_rows,
                e4m3(codes), scales, bf16(values), num_rows, depth, power_of_two != 0,
                stream_of(stream));
}

int moe_drills_m5_quantize_weights(moe_drills_e4m3* codes,
                                   float* scales,
                                   const moe_drills_bf16* w,
                                   int num_experts,
                                   int n,
                                   int depth,
                                   int power_of_two,
                                   void* stream) {
  return answer("m5_quantize_weights", solution::refuse_quantize_weights,
                solution::quantize_weights, e4m3(codes), scales, bf16(w), num_experts, n, depth,
                power_of_two != 0, stream_of(stream));
}

int moe_drills_m5_grouped_gemm_fp8(void* out,
                                   int out_fp32,
                                   const moe_drills_e4m3* a_codes,
                                   const float* a_scales,
                                   const moe_drills_e4m3* w_codes,
                                   const float* w_scales,
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
  if (!are_rows(rows)) return refused("m5_grouped_gemm_fp8", kUnknownRows);
  return answer("m5_grouped_gemm_fp8", solution::refuse_grouped_gemm_fp8,
                solution::grouped_gemm_fp8, out, out_fp32 != 0, e4m3(a_codes), a_scales,
                e4m3(w_codes), w_scales, topk_weights, sorted_token_ids, expert_ids,
                num_tokens_post_padded, num_tokens, top_k, num_experts, n, depth, block_m,
                rows_of(rows), stream_of(stream));
}
