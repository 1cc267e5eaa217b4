// The meaning of m1_align in plain host C++: no tricks, double where it matters.
#pragma once

#include <cstdint>
#include <vector>

namespace moe::oracle {

struct Routing {
  std::vector<int32_t> topk_ids;     // [T, K]
  std::vector<double> topk_weights;  // [T, K]
};

Routing route(const std::vector<float>& logits,  // [T, E]
              int num_tokens,
              int num_experts,
              int top_k,
              bool renormalize);

struct Alignment {
  std::vector<int32_t> sorted_token_ids;  // [capacity]; ids of one expert ascending
  std::vector<int32_t> expert_ids;        // [capacity / block_m]
  int32_t num_tokens_post_padded = 0;
};

Alignment align(const std::vector<int32_t>& topk_ids,  // [T, K]
                int num_tokens,
                int top_k,
                int num_experts,
                int block_m);

}  // namespace moe::oracle
