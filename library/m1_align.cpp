// The C interface of m1: see moe_drills.h.
#include <drills/m1_align.h>

#include "call.h"

namespace solution = moe::solution;
using moe::library::answer;
using moe::library::are_sizes;
using moe::library::stream_of;

int moe_drills_m1_route(int32_t* topk_ids,
                        float* topk_weights,
                        const float* logits,
                        int num_tokens,
                        int num_experts,
                        int top_k,
                        int renormalize,
                        void* stream) {
  return answer("m1_route", solution::refuse_route, solution::route, topk_ids, topk_weights, logits,
                num_tokens, num_experts, top_k, renormalize != 0, stream_of(stream));
}

size_t moe_drills_m1_align_capacity(int num_tokens, int top_k, int num_experts, int block_m) {
  if (!are_sizes(num_tokens, num_experts, top_k) || block_m < 1) return 0;
  return moe::align_capacity(num_tokens, top_k, num_experts, block_m);
}

size_t moe_drills_m1_align_workspace_bytes(int num_tokens,
                                           int top_k,
                                           int num_experts,
                                           int block_m) {
  if (!are_sizes(num_tokens, num_experts, top_k) || block_m < 1) return 0;
  return solution::align_workspace_bytes(num_tokens, top_k, num_experts, block_m);
}

int moe_drills_m1_align(int32_t* sorted_token_ids,
                        int32_t* expert_ids,
                        int32_t* num_tokens_post_padded,
                        const int32_t* topk_ids,
                        int num_tokens,
                        int top_k,
                        int num_experts,
                        int block_m,
                        void* workspace,
                        size_t workspace_bytes,
                        void* stream) {
  return answer("m1_align", solution::refuse_align, solution::align, sorted_token_ids, expert_ids,
                num_tokens_post_padded, topk_ids, num_tokens, top_k, num_experts, block_m,
                workspace, workspace_bytes, stream_of(stream));
}
