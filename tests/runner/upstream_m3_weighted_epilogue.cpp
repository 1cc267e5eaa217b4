// What upstream::combine is in a runner: that of the side that it is linked with.
#include <drills/m3_weighted_epilogue.h>
#include <drills/upstream.h>

namespace moe::upstream {

cudaError_t combine(__nv_bfloat16* out,
                    const __nv_bfloat16* y,
                    const int32_t* topk_ids,
                    int num_tokens,
                    int top_k,
                    int hidden_size,
                    int num_experts,
                    cudaStream_t stream) {
  return DRILL_SIDE::combine(out, y, topk_ids, num_tokens, top_k, hidden_size, num_experts, stream);
}

}  // namespace moe::upstream
