// The C interface of m8: see moe_drills.h.
#include <drills/m8_persistent.h>

#include "call.h"

namespace stage = moe::solution::m8;
using moe::library::answer;
using moe::library::are_sizes;
using moe::library::bf16;
using moe::library::stream_of;

size_t moe_drills_m8_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (!are_sizes(num_tokens, num_experts, top_k)) return 0;
  return stage::moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size,
                                          intermediate_size);
}

int moe_drills_m8_moe_layer(moe_drills_bf16* out,
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
  return answer("m8_moe_layer", stage::refuse_moe_layer, stage::moe_layer, bf16(out), bf16(x),
                logits, bf16(w13), bf16(w2), num_tokens, num_experts, top_k, hidden_size,
                intermediate_size, renormalize != 0, workspace, workspace_bytes, stream_of(stream));
}
