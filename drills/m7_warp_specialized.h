// m7_warp_specialized: both GEMMs of the layer on wgmma, by warps that either fetch or multiply.
//
//   gemm1_swiglu   h[p] = silu(x[token] * gate[expert]^T) * (x[token] * up[expert]^T)
//   gemm2_sorted   y[p] = (h[p] * w2[expert]^T) * topk_weights[flat_id]
//
// Both work in align's order: row p of h and of y belongs to flat_id = sorted_token_ids[p], token =
// flat_id / top_k. So GEMM1 gathers rows of x, and GEMM2 reads and writes whole tiles, which is
// what bulk copies (TMA) move. Nothing is sorted back here: who adds up y reads it through the
// table.
//
// Worked example: T = 4, K = 2, block_m = 128; sorted_token_ids starts 0 4 7 8 8 ... (expert 0 of
// m1_align.h, then pad ids up to row 128). h[2] belongs to flat id 7: token 3, slot 1. Rows 3 to
// 127 of the block are padding: unspecified in h and y. Row 128 is expert 1's first.
//
// Cost: 4 * T*K * H * I FLOPs in GEMM1, half of that in GEMM2, on real rows. GEMM1 moves at least
// 2 * (T*H + E' * 2I * H + P * I) bytes, GEMM2 2 * (P * I + E' * H * I + P * H).
//
// Sources: warp specialisation with a ring of mbarriers as in CUTLASS (cooperative kernels for
// sm_90) and in FlashAttention-3 (arXiv 2407.08608); the deferred store is ours.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/capability.h>
#include <drills/m1_align.h>

namespace moe {

// The block_m that align must have been called with.
inline constexpr int kHopperBlockM = 128;

// The arguments of both, a list of twelve otherwise.
struct SortedGemm {
  __nv_bfloat16* out;                     // GEMM1: h [capacity, I]; GEMM2: y [capacity, H]
  const __nv_bfloat16* a;                 // x [T, H]; h [capacity, I]
  const __nv_bfloat16* w;                 // w13 [E, 2I, H], gate rows, then up rows; w2 [E, H, I]
  const float* topk_weights;              // [T*K], by flat id; GEMM2 only
  const int32_t* sorted_token_ids;        // [capacity]
  const int32_t* expert_ids;              // [capacity / 128]
  const int32_t* num_tokens_post_padded;  // [1]
  int num_tokens;
  int top_k;
  int num_experts;
  int hidden_size;        // H, the reduction of GEMM1
  int intermediate_size;  // I, the reduction of GEMM2
};

}  // namespace moe

namespace moe::DRILL_SIDE {

// h = silu(x * gate^T) * (x * up^T) in fp32, one rounding to bf16; SiLU to 1e-6 of its value, or to
// 5e-8.
//   - Blocks behind num_tokens_post_padded[0], or with an expert outside [0, E): rows untouched.
//   - Padding rows inside a block: unspecified.
// H % 8 == 0 and I % 8 == 0. Offsets need int64. Refused unless the device's capability is 9.0.
cudaError_t gemm1_swiglu(const SortedGemm& gemm, cudaStream_t stream);

// y = (h * w2^T) * weight: the fp32 sum times the fp32 weight, then the one rounding to bf16.
// Padding rows of h hold anything. Untouched and unspecified rows as above.
cudaError_t gemm2_sorted(const SortedGemm& gemm, cudaStream_t stream);

// Given: nullptr, or the rule that the arguments break.
inline const char* refuse_gemm1_swiglu(const SortedGemm& gemm, cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(gemm.num_tokens, gemm.num_experts, gemm.top_k)) return rule;
  if (gemm.hidden_size < 1 || gemm.hidden_size % 8 != 0)
    return "H must be a positive multiple of 8";
  if (gemm.intermediate_size < 1 || gemm.intermediate_size % 8 != 0) {
    return "I must be a positive multiple of 8";
  }
  if (gemm.intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  if (const char* rule =
          refuse_blocks(gemm.num_tokens, gemm.top_k, gemm.num_experts, kHopperBlockM)) {
    return rule;
  }
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(gemm.out) |
                              reinterpret_cast<uintptr_t>(gemm.a) |
                              reinterpret_cast<uintptr_t>(gemm.w);
  if (addresses % 16 != 0) return "out, a and w must be 16-byte aligned";
  return refuse_unless_capability_9_0();
}

inline const char* refuse_gemm2_sorted(const SortedGemm& gemm, cudaStream_t stream) {
  return refuse_gemm1_swiglu(gemm, stream);
}

}  // namespace moe::DRILL_SIDE
