// m8_persistent: the whole layer as fast as a Hopper GPU allows, in one graph-safe call.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/m1_align.h>
#include <drills/needs_hopper.h>

namespace moe::DRILL_SIDE::m8 {

size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

cudaError_t moe_layer(__nv_bfloat16* out,        // [T, H]
                      const __nv_bfloat16* x,    // [T, H]
                      const float* logits,       // [T, E]
                      const __nv_bfloat16* w13,  // [E, 2I, H], gate rows, then up rows
                      const __nv_bfloat16* w2,   // [E, H, I]
                      int num_tokens,
                      int num_experts,
                      int top_k,
                      int hidden_size,
                      int intermediate_size,
                      bool renormalize,
                      void* workspace,
                      size_t workspace_bytes,
                      cudaStream_t stream);

inline const char* refuse_moe_layer(const __nv_bfloat16* out,
                                    const __nv_bfloat16* x,
                                    const float* /*logits*/,
                                    const __nv_bfloat16* w13,
                                    const __nv_bfloat16* w2,
                                    int num_tokens,
                                    int num_experts,
                                    int top_k,
                                    int hidden_size,
                                    int intermediate_size,
                                    bool /*renormalize*/,
                                    const void* workspace,
                                    size_t workspace_bytes,
                                    cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(num_tokens, num_experts, top_k)) return rule;
  if (num_experts > kMaxExperts) return "num_experts must not exceed 1024";
  if (top_k > kMaxTopK) return "top_k must not exceed 32";
  if (hidden_size < 1 || hidden_size % 8 != 0) return "H must be a positive multiple of 8";
  if (intermediate_size < 1 || intermediate_size % 8 != 0) {
    return "I must be a positive multiple of 8";
  }
  if (intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, 128)) return rule;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(x) |
                              reinterpret_cast<uintptr_t>(w13) | reinterpret_cast<uintptr_t>(w2);
  if (addresses % 16 != 0) return "out, x, w13 and w2 must be 16-byte aligned";
  if (workspace_bytes <
      moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size, intermediate_size)) {
    return "workspace_bytes must be at least moe_layer_workspace_bytes(...)";
  }
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    return "workspace must be 256-byte aligned";
  }
  return refuse_without_hopper();
}

}  // namespace moe::DRILL_SIDE::m8
