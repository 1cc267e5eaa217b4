// What upstream::route and upstream::align are in a runner: those of the side that it is linked
// with.
#include <drills/upstream.h>

namespace moe::upstream {

cudaError_t route(int32_t* topk_ids,
                  float* topk_weights,
                  const float* logits,
                  int num_tokens,
                  int num_experts,
                  int top_k,
                  bool renormalize,
                  cudaStream_t stream) {
  return DRILL_SIDE::route(topk_ids, topk_weights, logits, num_tokens, num_experts, top_k,
                           renormalize, stream);
}

size_t align_workspace_bytes(int num_tokens, int top_k, int num_experts, int block_m) {
  return DRILL_SIDE::align_workspace_bytes(num_tokens, top_k, num_experts, block_m);
}

cudaError_t align(int32_t* sorted_token_ids,
                  int32_t* expert_ids,
                  int32_t* num_tokens_post_padded,
                  const int32_t* topk_ids,
                  int num_tokens,
                  int top_k,
                  int num_experts,
                  int block_m,
                  void* workspace,
                  size_t workspace_bytes,
                  cudaStream_t stream) {
  return DRILL_SIDE::align(sorted_token_ids, expert_ids, num_tokens_post_padded, topk_ids,
                           num_tokens, top_k, num_experts, block_m, workspace, workspace_bytes,
                           stream);
}

}  // namespace moe::upstream
