// The C interface of m10: see moe_drills.h.
#include <drills/m10_fp8_hopper.h>

#include "call.h"

namespace solution = moe::solution::m10;
using moe::library::answer;
using moe::library::are_sizes;
using moe::library::bf16;
using moe::library::e4m3;
using moe::library::stream_of;

size_t moe_drills_moe_layer_fp8_workspace_bytes(int num_tokens,
                                                int num_experts,
                                                int top_k,
                                                int hidden_size,
                                                int intermediate_size,
                                                int out_fp32) {
  if (!are_sizes(num_tokens, num_experts, top_k)) return 0;
  if (hidden_size < 1 || intermediate_size < 1) return 0;
  return solution::moe_layer_fp8_workspace_bytes(num_tokens, num_experts, top_k, hidden_size,
                                                 intermediate_size, out_fp32 != 0);
}

int moe_drills_moe_layer_fp8(void* out,
                             int out_fp32,
                             const moe_drills_bf16* x,
                             const float* logits,
                             const moe_drills_e4m3* w13_codes,
                             const float* w13_scales,
                             const moe_drills_e4m3* w2_codes,
                             const float* w2_scales,
                             int num_tokens,
                             int num_experts,
                             int top_k,
                             int hidden_size,
                             int intermediate_size,
                             int renormalize,
                             void* workspace,
                             size_t workspace_bytes,
                             void* stream) {
  return answer("moe_layer_fp8", solution::refuse_moe_layer_fp8, solution::moe_layer_fp8, out,
                out_fp32 != 0, bf16(x), logits, e4m3(w13_codes), w13_scales, e4m3(w2_codes),
                w2_scales, num_tokens, num_experts, top_k, hidden_size, intermediate_size,
                renormalize != 0, workspace, workspace_bytes, stream_of(stream));
}
