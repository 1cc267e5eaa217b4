// m3_weighted_epilogue: what stands between and behind the two GEMMs, and with that the whole
// layer.
//
//   silu_and_mul            gate_up [T*K, 2I] -> h [T*K, I]      h = silu(gate) * up
//   grouped_gemm_weighted   m2's GEMM, each row times its routing weight before it is rounded
//   combine                 y [T*K, H] -> out [T, H]             the K rows of a token, added
//   moe_layer               x, logits, w13, w2 -> out            all of it:
//
//   out[t] = sum over slots s of  weight[t,s] * ( w2[e] * ( silu(w1[e] * x[t]) * (w3[e] * x[t]) )
//   ),
//            e = topk_ids[t,s];  w13 [E, 2I, H] holds the I rows of w1 (gate), then the I rows of
//            w3 (up)
//
// SiLU is not linear, so the weight has one right place before the sum: behind GEMM2. There it
// costs nothing, as the row is still in fp32 registers.
//
// Worked example: T = 4, K = 2, E = 3, topk_ids = {0,1, 1,2, 0,2, 1,0} (see m1_align.h), every
// weight 0.75 for slot 0 and 0.25 for slot 1. Row 5 of gate_up belongs to token 2, slot 1,
// expert 2. With gate = 2 and up = 3, h = 2 / (1 + e^-2) * 3 = 5.28. Row 5 of y is w2[2] * h[5]
// times 0.25; and out[2] = y[4] + y[5].
//
// Cost: SwiGLU moves 6*T*K*I bytes and combine 2*(T*K + T)*H, both with next to no FLOPs; the GEMMs
// are m2's. The layer does 6 * T*K * H * I FLOPs.
//
// Sources: SwiGLU, arXiv 2002.05202. vLLM's fused_moe_kernel multiplies in the epilogue too
// (MUL_ROUTED_WEIGHT, set for the second GEMM); its moe_sum is combine.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/m2_grouped_gemm.h>

namespace moe::DRILL_SIDE {

// h[r][i] = silu(gate) * up in fp32, one rounding; silu(g) = g / (1 + e^-g), gate = gate_up[r][i],
// up = gate_up[r][I + i]. All rows are computed. For gates below -87 the result may also be 0:
// |silu| is less than 2^-118 there. NaN gives NaN.
// I % 8 == 0; num_ids may be 0. Refused: see refuse_silu_and_mul.
cudaError_t silu_and_mul(__nv_bfloat16* h,              // [T*K, I]
                         const __nv_bfloat16* gate_up,  // [T*K, 2I]
                         int num_ids,                   // T*K
                         int intermediate_size,         // I
                         cudaStream_t stream);

// out[flat_id][:] = (a[row][:] * w[expert]^T) * topk_weights[flat_id]: the fp32 sum times the fp32
// weight, then the one rounding to bf16. All else is said in m2_grouped_gemm.h. Weights of flat ids
// that are not routed are not used, whatever they hold.
cudaError_t grouped_gemm_weighted(__nv_bfloat16* out,                     // [T*K, N]
                                  const __nv_bfloat16* a,                 // [T, D] or [T*K, D]
                                  const __nv_bfloat16* w,                 // [E, N, D]
                                  const float* topk_weights,              // [T, K]
                                  const int32_t* sorted_token_ids,        // [capacity]
                                  const int32_t* expert_ids,              // [capacity / block_m]
                                  const int32_t* num_tokens_post_padded,  // [1]
                                  int num_tokens,
                                  int top_k,
                                  int num_experts,
                                  int n,
                                  int depth,
                                  int block_m,
                                  Rows rows,
                                  cudaStream_t stream);

// out[t][:] = sum of y[t*K + s][:] over the slots s = 0 .. K-1 whose id is in [0, E), added in fp32
// in that order, rounded once. Rows of y that are not routed are not read. A token without a routed
// slot gets zeros. H % 8 == 0.
cudaError_t combine(__nv_bfloat16* out,       // [T, H]
                    const __nv_bfloat16* y,   // [T*K, H]
                    const int32_t* topk_ids,  // [T, K]
                    int num_tokens,
                    int top_k,
                    int hidden_size,  // H
                    int num_experts,
                    cudaStream_t stream);

// Bytes of scratch memory that moe_layer wants; yours to choose. Called on the host.
size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

// The whole layer. Nothing is kept between calls; the workspace is 256-byte aligned, dirty before
// and after. The same input gives the same bytes in every run: no sum may depend on who comes
// first. H % 8 == 0 and I % 8 == 0; E and K as in m1_align.h. num_tokens = 0 launches nothing.
cudaError_t moe_layer(__nv_bfloat16* out,        // [T, H]
                      const __nv_bfloat16* x,    // [T, H]
                      const float* logits,       // [T, E]
                      const __nv_bfloat16* w13,  // [E, 2I, H]
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

// Given: nullptr, or the rule that the arguments break.
inline const char* refuse_silu_and_mul(const __nv_bfloat16* h,
                                       const __nv_bfloat16* gate_up,
                                       int num_ids,
                                       int intermediate_size,
                                       cudaStream_t /*stream*/) {
  if (num_ids < 0) return "num_ids must be at least 0";
  if (intermediate_size < 1 || intermediate_size % 8 != 0) {
    return "I must be a positive multiple of 8";
  }
  if (intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  if ((reinterpret_cast<uintptr_t>(h) | reinterpret_cast<uintptr_t>(gate_up)) % 16 != 0) {
    return "h and gate_up must be 16-byte aligned";
  }
  return nullptr;
}

inline const char* refuse_grouped_gemm_weighted(const __nv_bfloat16* out,
                                                const __nv_bfloat16* a,
                                                const __nv_bfloat16* w,
                                                const float* /*topk_weights*/,
                                                const int32_t* sorted_token_ids,
                                                const int32_t* expert_ids,
                                                const int32_t* num_tokens_post_padded,
                                                int num_tokens,
                                                int top_k,
                                                int num_experts,
                                                int n,
                                                int depth,
                                                int block_m,
                                                Rows rows,
                                                cudaStream_t stream) {
  return refuse_grouped_gemm(out, a, w, sorted_token_ids, expert_ids, num_tokens_post_padded,
                             num_tokens, top_k, num_experts, n, depth, block_m, rows, stream);
}

inline const char* refuse_combine(const __nv_bfloat16* out,
                                  const __nv_bfloat16* y,
                                  const int32_t* /*topk_ids*/,
                                  int num_tokens,
                                  int top_k,
                                  int hidden_size,
                                  int num_experts,
                                  cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(num_tokens, num_experts, top_k)) return rule;
  if (hidden_size < 1 || hidden_size % 8 != 0) return "H must be a positive multiple of 8";
  if ((reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(y)) % 16 != 0) {
    return "out and y must be 16-byte aligned";
  }
  return nullptr;
}

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
  // 128 is the largest block_m that the GEMM takes.
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, 128)) return rule;
  if (workspace_bytes <
      moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size, intermediate_size)) {
    return "workspace_bytes must be at least moe_layer_workspace_bytes(...)";
  }
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(x) |
                              reinterpret_cast<uintptr_t>(w13) | reinterpret_cast<uintptr_t>(w2);
  if (addresses % 16 != 0) return "out, x, w13 and w2 must be 16-byte aligned";
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    return "workspace must be 256-byte aligned";
  }
  return nullptr;
}

}  // namespace moe::DRILL_SIDE
