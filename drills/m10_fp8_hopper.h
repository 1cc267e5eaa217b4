// m10_fp8_hopper: the whole layer on 8-bit codes, on Hopper's matrix instruction.
//
//   route, align  m1's, with blocks of 128 rows
//   quantise      m5's quantize_rows: codes and scales of x
//   sort          where each slot's row went; the scales of x in that order
//   GEMM1         h[row] = silu(x[token] * gate[expert]^T) * (x[token] * up[expert]^T), and at once
//                 its codes and scales
//   GEMM2         y[row] = h[row] * w2[expert]^T
//   combine       out[token] = sum over slots of weight * y[row of the slot], in the order of slots
//
// Both GEMMs run on m7's ring: a producer fetches, two warpgroups multiply. wgmma m64nNk32 doubles
// the rate of bf16, but its sums of e4m3 products keep about 14 bits. So a sum runs over one scale
// block only, 128 of the reduction; times both scales it is added to a sum in fp32: two levels.
// h never exists in bf16: GEMM1 finds the largest magnitude of 128 columns of a row in registers.
//
// Worked example: T = K = E = 1, H = I = 128; all codes are 0x38 (the value 1), the scales of w13
// are 1/64 and that of w2 is 1. x is 448 everywhere, so its codes are 0x7e (448) and its scale
// is 1. gate = up = 128 * 448 / 64 = 896, h = 896 * 896 = 802816 in every column: the scale is
// 1792, the code 0x7e again, and out = 128 * 802816 with the weight 1.
//
// Cost: 6 * T*K * H * I FLOPs on real rows. Bytes, at least: 4 * T*H (x and out) + 3 * E' * H * I
// codes, E' being the experts that somebody chose. Besides, x's codes are written and read (T*H),
// h's (T*K * I) and y (2 * T*K * H).
//
// Files: the contract here; given is drills/m10_fp8_hopper.tiles.h (the workspace, what a block of
// the GEMMs holds, SiLU, codes, tensor maps); yours is mine/m10_fp8_hopper.cu.
//
// Sources: DeepSeek-V3 (arXiv 2412.19437, section 3.3) for the blocks and the promotion every 128;
// DeepGEMM has the same on sm_90; two halves that share one set of partial sums: LMDeploy's
// TurboMind.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <drills/capability.h>
#include <drills/m1_align.h>
#include <drills/m5_block_fp8.h>

namespace moe {

inline constexpr int kFp8BlockM = 128;  // rows of a block of align

}  // namespace moe

namespace moe::DRILL_SIDE::m10 {

// The bytes of scratch memory that moe_layer_fp8 wants. Called on the host.
size_t moe_layer_fp8_workspace_bytes(int num_tokens,
                                     int num_experts,
                                     int top_k,
                                     int hidden_size,
                                     int intermediate_size,
                                     bool out_fp32);

// out[t] = sum over the slots of token t of weight * expert(x[t]), with weights as in m1's route.
//   - Codes and scales of w13 and w2 are those of m5's quantize_weights: a scale for each 128 x
//   128.
//   - x and h are quantised inside the call, a scale for each row and 128 columns, by m5's rules:
//   so
//     NaN and rows of zeros are as there. h is quantised from fp32; its codes may be those of
//     h * (1 / scale), which differ from h / scale now and then.
//   - Each 128 of a reduction is summed apart, multiplied by both scales and added in fp32.
//   - `out` is bf16, or float where out_fp32 says so; then y is fp32 too, so that nothing after h
//   is
//     rounded to less.
//   - SiLU to 1e-6 of its value, or to 5e-8, as in m7. Same input, same bytes, in every run.
//   - The workspace is dirty before and after.
//   - E <= 1024, K <= 32, H % 128 == 0, I % 128 == 0; T * H < 2^32. T = 0 launches nothing.
// Refused unless the device's capability is 9.0.
cudaError_t moe_layer_fp8(void* out,  // [T, H] bf16 or float
                          bool out_fp32,
                          const __nv_bfloat16* x,          // [T, H]
                          const float* logits,             // [T, E]
                          const __nv_fp8_e4m3* w13_codes,  // [E, 2I, H], gate rows, then up rows
                          const float* w13_scales,         // [E, 2I/128, H/128]
                          const __nv_fp8_e4m3* w2_codes,   // [E, H, I]
                          const float* w2_scales,          // [E, H/128, I/128]
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
inline const char* refuse_moe_layer_fp8(const void* out,
                                        bool out_fp32,
                                        const __nv_bfloat16* x,
                                        const float* /*logits*/,
                                        const __nv_fp8_e4m3* w13_codes,
                                        const float* /*w13_scales*/,
                                        const __nv_fp8_e4m3* w2_codes,
                                        const float* /*w2_scales*/,
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
  if (hidden_size < 1 || hidden_size % kScaleBlock != 0) {
    return "H must be a positive multiple of 128";
  }
  if (intermediate_size < 1 || intermediate_size % kScaleBlock != 0) {
    return "I must be a positive multiple of 128";
  }
  if (intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  if (static_cast<int64_t>(num_tokens) * hidden_size > int64_t{UINT32_MAX}) {
    return "T * H must be less than 2^32";
  }
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, kFp8BlockM)) return rule;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(x) |
                              reinterpret_cast<uintptr_t>(w13_codes) |
                              reinterpret_cast<uintptr_t>(w2_codes);
  if (addresses % 16 != 0) return "out, x, w13_codes and w2_codes must be 16-byte aligned";
  if (workspace_bytes < moe_layer_fp8_workspace_bytes(num_tokens, num_experts, top_k, hidden_size,
                                                      intermediate_size, out_fp32)) {
    return "workspace_bytes must be at least moe_layer_fp8_workspace_bytes(...)";
  }
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    return "workspace must be 256-byte aligned";
  }
  return refuse_unless_capability_9_0();
}

}  // namespace moe::DRILL_SIDE::m10
