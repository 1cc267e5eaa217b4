// m9_decode: the whole layer for a few tokens, T <= 64, as fast as the weights can be read.
//
//   route     m1's top-k; then for each expert that somebody chose the flat ids that chose it
//   GEMM1     h[id] = silu(x[token] * gate[expert]^T) * (x[token] * up[expert]^T)
//   GEMM2     T <= 4: out[token] = sum over experts of weight * h[id] * w2[expert]^T
//             else:   y[split][id] = the split's part of h[id] * w2[expert]^T, in fp32
//   combine   T > 4: out[token] = sum over slots of weight * (sum over splits of y)
//
// There are too few tokens to fill a tile and nothing to reuse: each weight of an expert that was
// hit is read once, by one warp, and used for all tokens of the expert. For T <= 4 it goes straight
// into registers and fused multiply-adds; above into a ring of the warp's own in shared memory,
// from there into mma.sync with W as its M and tokens as its N, eight at a time.
//
// Worked example: T = 4, K = 2, E = 3, the routing of m1_align.h: experts 0 1, 1 2, 0 2, 1 0. Bit t
// of an expert's mask says that token t chose it: 1101, 1011, 0110 (token 3 is the first digit).
// Runs are (expert, first, count) = (0, 0, 3), (1, 3, 3), (2, 6, 2), and flat_ids 0 4 7, 1 2 6,
// 3 5.
//
// Cost: 6 * T*K * H * I FLOPs. Bytes, at least: 6 * E' * H * I, E' being the experts that somebody
// chose; all else is small. At 4.8 TB/s (H200) the Qwen3-30B-A3B layer (E 128, K 8, H 2048, I 768)
// takes 15.7 us for one token, of which 8 experts are hit.
//
// Files: the contract here; given are drills/m9_decode.routing.h (the workspace, route),
// drills/m9_decode.pieces.h (what a warp works with: loads, the ring) and m9_decode.products.h (the
// frame of the products for T > 4); yours is mine/m9_decode.cu: the steps of route, the products,
// the order of the ring, sums in a fixed order, the launches.
//
// Sources: llama.cpp and FasterTransformer (matrix times vector by warps), DeepGEMM and LMDeploy
// (W as M for few tokens); masks of 64 tokens and the order of columns in fragments are ours.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/m1_align.h>

namespace moe::DRILL_SIDE::m9 {

inline constexpr int kMaxTokens = 64;

// The bytes of scratch memory that moe_layer wants. Called on the host.
size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

// The layer of m3's contract: out[t] = sum over the slots of token t of weight * expert(x[t]).
//   - T <= 64. fp32 sums; rounded to bf16: h and out, nothing else.
//   - Same input, same bytes, in every run and on every number of multiprocessors: sums that are
//     split are added up in a fixed order.
//   - The workspace is dirty before and after. A captured graph can be replayed with other routing.
//   - E <= 1024, K <= 32, H % 8 == 0, I % 8 == 0. T = 0 launches nothing.
// Runs on 8.0 and newer; on 9.0 its kernels overlap (drills/dependent_launch.h).
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

// Given: nullptr, or the rule that the arguments break.
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
  if (num_tokens > kMaxTokens) return "num_tokens must not exceed 64";
  if (num_experts > kMaxExperts) return "num_experts must not exceed 1024";
  if (top_k > kMaxTopK) return "top_k must not exceed 32";
  if (hidden_size < 1 || hidden_size % 8 != 0) return "H must be a positive multiple of 8";
  if (intermediate_size < 1 || intermediate_size % 8 != 0) {
    return "I must be a positive multiple of 8";
  }
  if (intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  const int64_t rows = int64_t{num_experts} * (int64_t{hidden_size} + intermediate_size);
  if (rows > INT_MAX) return "E * (H + I) must fit in int";
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
  return nullptr;
}

}  // namespace moe::DRILL_SIDE::m9
