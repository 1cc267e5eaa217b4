// m6_wgmma: m2's grouped GEMM on Hopper's own instructions: a warpgroup of 128 threads multiplies
// straight from shared memory (wgmma), and one thread fetches whole tiles of W (TMA).
//
// The meaning is m2's, word for word: out[flat_id][:] = a[row][:] * w[expert]^T for every routed
// (token, slot) pair; row = flat_id / top_k for Rows::kTokens, flat_id for Rows::kSlots. Only
// block_m and the device are narrower: wgmma computes 64 rows at a time.
//
// Worked example: T = 4, K = 2, block_m = 64; sorted_token_ids starts 0 4 7 8 8 ... (expert 0 of
// m1_align.h, then pad ids up to row 64), expert_ids 0 1 2. The first block multiplies a tile of 64
// rows of which 3 are real; in GEMM1 they are x rows 0, 2 and 3. W's tile is a box of a
// three-dimensional array: 128 rows of expert 0, 64 columns, swizzled by the copy itself.
//
// Cost: m2's. 2 * T*K * N * D FLOPs on real rows; at least 2 * (rows(A) * D + E' * N * D + T*K * N)
// bytes, E' being the experts that have rows.
//
// Sources: PTX ISA, chapters wgmma, cp.async.bulk.tensor and mbarrier; CUTLASS for gathering the
// rows of A by cp.async beside a W that comes by TMA (examples/52_hopper_gather_scatter_fusion).
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/capability.h>
#include <drills/m2_grouped_gemm.h>

// A namespace of its own: grouped_gemm of m2 can stand beside this one.
namespace moe::DRILL_SIDE::m6 {

// bf16 in, fp32 accumulate, one rounding to bf16 at the end.
//   - A block at or behind num_tokens_post_padded[0], or whose expert is outside [0, E), does
//   nothing.
//   - Rows of `out` that no valid flat id names stay untouched, byte for byte.
//   - Offsets need int64.
// N % 8 == 0 and D % 8 == 0; block_m is 64 or 128, the value that align was called with. Refused
// unless the device's capability is 9.0. Returns cudaErrorInvalidValue, before any launch, where
// refuse_grouped_gemm has a sentence to say.
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
  if (block_m != 64 && block_m != 128) return "block_m must be 64 or 128";
  if (const char* rule = DRILL_SIDE::refuse_grouped_gemm(
          out, a, w, sorted_token_ids, expert_ids, num_tokens_post_padded, num_tokens, top_k,
          num_experts, n, depth, block_m, rows, stream)) {
    return rule;
  }
  // Programs of at least 64 columns, in one dimension of the grid.
  const size_t capacity = align_capacity(num_tokens, top_k, num_experts, block_m);
  if (capacity / static_cast<size_t>(block_m) * (static_cast<size_t>(n) / 64 + 1) > INT_MAX) {
    return "capacity / block_m * (N / 64 + 1) must fit in int";
  }
  return refuse_unless_capability_9_0();
}

}  // namespace moe::DRILL_SIDE::m6
