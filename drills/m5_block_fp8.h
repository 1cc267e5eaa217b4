// m5_block_fp8: the grouped GEMM on 8-bit codes, with one scale for each block of values.
//
// An e4m3 code has a sign, 4 bits of exponent and 3 of mantissa: values up to 448, about two
// digits. A scale makes a block of values fit: value = code * scale. Activations get one scale for
// each 1 x 128 (a row, 128 of D), weights one for each 128 x 128 (of N and D). The GEMM multiplies
// codes, so it must sum each 128 of D apart, multiply that partial sum by both scales, and add it
// up in fp32.
//
//   quantize_rows      x or h [rows, D] bf16  -> codes [rows, D], scales [rows, ceil(D/128)]
//   quantize_weights   w [E, N, D] bf16       -> codes [E, N, D], scales [E, ceil(N/128),
//   ceil(D/128)] grouped_gemm_fp8   out[flat_id] = sum over blocks b of D:
//                        (a_codes[row][b] * w_codes[expert][b]^T) * a_scales[row][b] *
//                        w_scales[expert][.][b]
//
// Worked example: D = 256, T = 1, K = E = 1; all codes are 0x38 (the value 1), a_scales = {1, 2},
// w_scales = {1, 1}: out = 128 * 1 + 128 * 2 = 384. A value of 300 in a block whose largest is 448
// has the scale 1 and the code 0x79, which means 288: the next code, 0x7a, means 320.
//
// Cost: FLOPs as in m2, with about half the bytes: T*K * N * D * 2 FLOPs; rows * D + E' * N * D
// bytes of codes, 4 bytes for 128 of A, 4 bytes for 16,384 of W, and out. Quantising reads 2 bytes
// and writes 1 for each value: bound by memory.
//
// Sources: DeepSeek-V3 (arXiv 2412.19437, section 3.3) for blocks of 1 x 128 and 128 x 128; "FP8
// Formats for Deep Learning" (arXiv 2209.05433) for e4m3; per_token_group_quant_fp8 in vLLM has the
// same shape.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <drills/m2_grouped_gemm.h>

namespace moe {

inline constexpr int kScaleBlock = 128;
inline constexpr float kLargestCode = 448.0f;  // the value of 0x7e
inline constexpr float kLargestBf16 = 3.3895314e38f;
inline constexpr float kSmallestAmax = 1e-10f;  // the scale of a block of zeros is not 0

// Scales along `extent` values; the last block may be partial.
__host__ __device__ constexpr int scale_blocks(int extent) {
  return (extent - 1) / kScaleBlock + 1;
}

}  // namespace moe

namespace moe::DRILL_SIDE {

// The least power of two that is >= scale, for any normal scale > 0 up to 2^127; exact. The tests
// call it alone, on the host.
__host__ __device__ float power_of_two_at_least(float scale);

// Codes and scales of rows, a block being 128 neighbouring values of one row (fewer at the end).
//   amax    largest magnitude of the block; NaN does not count, infinities count as the largest
//   bf16 scale   fmaxf(amax, 1e-10f) / 448.0f, with `power_of_two` the least power of two >= that
//   code    e4m3 of value / scale, rounded to nearest even, saturating at 448 (0x7e); a division:
//   other
//           formulas differ in some codes. NaN gives 0x7f, -0 gives 0x80.
// num_rows may be 0. D % 16 == 0.
cudaError_t quantize_rows(__nv_fp8_e4m3* codes,         // [rows, D]
                          float* scales,                // [rows, ceil(D/128)]
                          const __nv_bfloat16* values,  // [rows, D]
                          int num_rows,
                          int depth,
                          bool power_of_two,
                          cudaStream_t stream);

// The same for weights, a block being 128 x 128, counted from row 0 and column 0 of each expert.
// N % 8 == 0, D % 16 == 0.
cudaError_t quantize_weights(__nv_fp8_e4m3* codes,    // [E, N, D]
                             float* scales,           // [E, ceil(N/128), ceil(D/128)]
                             const __nv_bfloat16* w,  // [E, N, D]
                             int num_experts,
                             int n,
                             int depth,
                             bool power_of_two,
                             cudaStream_t stream);

// m2's grouped GEMM on codes; read m2_grouped_gemm.h first: gather, early exit and which rows of
// `out` are written are as there.
//   - a_scales has a row for each row of a_codes: token or flat id, as `rows` says.
//   - Blocks of w_scales count from row 0 of the expert, across the seam between gate and up.
//   - The partial sum of each 128 of D is scaled and added in fp32.
//   - Where topk_weights is not null the sum is multiplied by topk_weights[flat_id], as in m3.
//   - `out` is float where out_fp32 says so, else bf16 with one rounding.
// D % 16 == 0, N % 8 == 0; block_m is 16, 32, 64 or 128.
cudaError_t grouped_gemm_fp8(void* out,  // [T*K, N] float or bf16
                             bool out_fp32,
                             const __nv_fp8_e4m3* a_codes,     // [T, D] or [T*K, D]
                             const float* a_scales,            // [T or T*K, ceil(D/128)]
                             const __nv_fp8_e4m3* w_codes,     // [E, N, D]
                             const float* w_scales,            // [E, ceil(N/128), ceil(D/128)]
                             const float* topk_weights,        // [T, K] or null
                             const int32_t* sorted_token_ids,  // [capacity]
                             const int32_t* expert_ids,        // [capacity / block_m]
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
inline const char* refuse_quantize_rows(const __nv_fp8_e4m3* codes,
                                        const float* /*scales*/,
                                        const __nv_bfloat16* values,
                                        int num_rows,
                                        int depth,
                                        bool /*power_of_two*/,
                                        cudaStream_t /*stream*/) {
  if (num_rows < 0) return "num_rows must be at least 0";
  if (depth < 1 || depth % 16 != 0) return "D must be a positive multiple of 16";
  if ((reinterpret_cast<uintptr_t>(codes) | reinterpret_cast<uintptr_t>(values)) % 16 != 0) {
    return "codes and values must be 16-byte aligned";
  }
  return nullptr;
}

inline const char* refuse_quantize_weights(const __nv_fp8_e4m3* codes,
                                           const float* /*scales*/,
                                           const __nv_bfloat16* w,
                                           int num_experts,
                                           int n,
                                           int depth,
                                           bool /*power_of_two*/,
                                           cudaStream_t /*stream*/) {
  if (num_experts < 1) return "num_experts must be at least 1";
  if (n < 1 || n % 8 != 0) return "N must be a positive multiple of 8";
  if (depth < 1 || depth % 16 != 0) return "D must be a positive multiple of 16";
  if ((reinterpret_cast<uintptr_t>(codes) | reinterpret_cast<uintptr_t>(w)) % 16 != 0) {
    return "codes and w must be 16-byte aligned";
  }
  return nullptr;
}

inline const char* refuse_grouped_gemm_fp8(const void* out,
                                           bool /*out_fp32*/,
                                           const __nv_fp8_e4m3* a_codes,
                                           const float* /*a_scales*/,
                                           const __nv_fp8_e4m3* w_codes,
                                           const float* /*w_scales*/,
                                           const float* /*topk_weights*/,
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
  if (depth < 1 || depth % 16 != 0) return "D must be a positive multiple of 16";
  if (block_m != 16 && block_m != 32 && block_m != 64 && block_m != 128) {
    return "block_m must be 16, 32, 64 or 128";
  }
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, block_m)) return rule;
  const int64_t blocks = static_cast<int64_t>(
      align_capacity(num_tokens, top_k, num_experts, block_m) / static_cast<size_t>(block_m));
  if (blocks * scale_blocks(n) > INT_MAX) return "capacity / block_m * ceil(N/128) must fit in int";
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) |
                              reinterpret_cast<uintptr_t>(a_codes) |
                              reinterpret_cast<uintptr_t>(w_codes);
  if (addresses % 16 != 0) return "out, a_codes and w_codes must be 16-byte aligned";
  return nullptr;
}

}  // namespace moe::DRILL_SIDE
