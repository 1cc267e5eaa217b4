// upstream.h: the functions of earlier stages, as a later stage calls them: upstream::route(...).
//
// Which file stands behind them is chosen when a runner is linked: the solutions while a stage is
// tested by itself, so that a mistake in m1 does not show as one in m3; any mix of your stages and
// ours when the whole layer is run.
#pragma once

#include <drills/m1_align.h>
#include <drills/m2_grouped_gemm.h>

struct __nv_fp8_e4m3;

namespace moe::upstream {

// m1_align.h
cudaError_t route(int32_t* topk_ids,    // [T, K]
                  float* topk_weights,  // [T, K]
                  const float* logits,  // [T, E]
                  int num_tokens,
                  int num_experts,
                  int top_k,
                  bool renormalize,
                  cudaStream_t stream);

size_t align_workspace_bytes(int num_tokens, int top_k, int num_experts, int block_m);

cudaError_t align(int32_t* sorted_token_ids,        // [capacity]
                  int32_t* expert_ids,              // [capacity / block_m]
                  int32_t* num_tokens_post_padded,  // [1]
                  const int32_t* topk_ids,          // [T, K]
                  int num_tokens,
                  int top_k,
                  int num_experts,
                  int block_m,
                  void* workspace,
                  size_t workspace_bytes,
                  cudaStream_t stream);

// m2_grouped_gemm.h
cudaError_t grouped_gemm(__nv_bfloat16* out,                     // [T*K, N]
                         const __nv_bfloat16* a,                 // [T, D] or [T*K, D]
                         const __nv_bfloat16* w,                 // [E, N, D]
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

// m3_weighted_epilogue.h
cudaError_t combine(__nv_bfloat16* out,       // [T, H]
                    const __nv_bfloat16* y,   // [T*K, H]
                    const int32_t* topk_ids,  // [T, K]
                    int num_tokens,
                    int top_k,
                    int hidden_size,
                    int num_experts,
                    cudaStream_t stream);

// m5_block_fp8.h
cudaError_t quantize_rows(__nv_fp8_e4m3* codes,         // [rows, D]
                          float* scales,                // [rows, ceil(D/128)]
                          const __nv_bfloat16* values,  // [rows, D]
                          int num_rows,
                          int depth,
                          bool power_of_two,
                          cudaStream_t stream);

}  // namespace moe::upstream
