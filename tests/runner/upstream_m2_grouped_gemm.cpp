// What upstream::grouped_gemm is in a runner: that of the side that it is linked with.
#include <drills/upstream.h>

namespace moe::upstream {

cudaError_t grouped_gemm(__nv_bfloat16* out,
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
  return DRILL_SIDE::grouped_gemm(out, a, w, sorted_token_ids, expert_ids, num_tokens_post_padded,
                                  num_tokens, top_k, num_experts, n, depth, block_m, rows, stream);
}

}  // namespace moe::upstream
