// m2_grouped_gemm: one GEMM per expert, all in one launch, over rows gathered by flat id.
//
// out[flat_id][:] = a[row][:] * w[expert]^T for every routed (token, slot) pair. align (m1) has put
// the flat ids of one expert into blocks of block_m rows; thread blocks of the kernel take one such
// block and one range of columns each, so each reads the weights of exactly one expert.
//
// The two GEMMs of the layer differ only in where a row of A lies:
//   Rows::kTokens   GEMM1: a is x [T, D], one row per token:          row = flat_id / top_k
//   Rows::kSlots    GEMM2: a is h [T*K, D], one row per (token, slot): row = flat_id
//
// Worked example: T = 4, K = 2, block_m = 2; sorted_token_ids starts 0 4 | 7 8 | 1 2 (see
// m1_align.h), expert_ids 0 0 1. The second block computes one row, flat id 7 with expert 0: from x
// row 3 in GEMM1, from h row 7 in GEMM2, into out row 7. Its other row is padding (8 = T*K): not
// read, not written.
//
// Cost: 2 * T*K * N * D FLOPs on real rows; at least 2 * (rows(A) * D + E' * N * D + T*K * N)
// bytes, E' being the experts that have rows. The T*K*N product is done on P >= T*K padded rows.
//
// Sources: fused_moe_kernel in vLLM (vllm/model_executor/layers/fused_moe) has the same structure;
// MegaBlocks (arXiv 2211.15841) for the idea of never padding to a capacity.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/m1_align.h>

namespace moe {

enum class Rows { kTokens, kSlots };

}  // namespace moe

namespace moe::DRILL_SIDE {

// bf16 in, fp32 accumulate, one rounding to bf16 at the end.
//   - A block at or behind num_tokens_post_padded[0], or whose expert is outside [0, E), does
//   nothing.
//   - Rows of `out` that no valid flat id names stay untouched, byte for byte.
//   - Offsets need int64: expert * N * D passes 2^31 in real models.
// N % 8 == 0 and D % 8 == 0; block_m is 16, 32, 64 or 128, the value that align was called with.
// Returns cudaErrorInvalidValue, before any launch, where refuse_grouped_gemm has a sentence to
// say.
cudaError_t grouped_gemm(__nv_bfloat16* out,                     // [T*K, N]
                         const __nv_bfloat16* a,                 // [T, D] or [T*K, D]
                         const __nv_bfloat16* w,                 // [E, N, D]
                         const int32_t* sorted_token_ids,        // [capacity]
                         const int32_t* expert_ids,              // [capacity / block_m]
                         const int32_t* num_tokens_post_padded,  // [1]
                         int num_tokens,
                         int top_k,
                         int num_experts,
                         int n,      // N, output columns
                         int depth,  // D, the reduction
                         int block_m,
                         Rows rows,
                         cudaStream_t stream);

// Given: nullptr, or the rule that the arguments break.
inline const char* refuse_grouped_gemm(const __nv_bfloat16* out,
                                       const __nv_bfloat16* a,
                                       const __nv_bfloat16* w,
                                       const int32_t* /*sorted_token_ids*/,
                                       const int32_t* /*expert_ids*/,
                                       const int32_t* /*num_tokens_post_padded*/,
                                       int num_tokens,
                                       int top_k,
                                       int num_experts,
                                       int n,
                                       int depth,
                                       int block_m,
                                       Rows /*rows*/,
                                       cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(num_tokens, num_experts, top_k)) return rule;
  if (n < 1 || n % 8 != 0) return "N must be a positive multiple of 8";
  if (depth < 1 || depth % 8 != 0) return "D must be a positive multiple of 8";
  if (block_m != 16 && block_m != 32 && block_m != 64 && block_m != 128) {
    return "block_m must be 16, 32, 64 or 128";
  }
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, block_m)) return rule;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(a) |
                              reinterpret_cast<uintptr_t>(w);
  if (addresses % 16 != 0) return "out, a and w must be 16-byte aligned";
  return nullptr;
}

}  // namespace moe::DRILL_SIDE
