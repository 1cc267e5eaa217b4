// The meaning of m1_align in plain host C++: no tricks, double where it matters.
#pragma once

#include <cmath>
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

// Relative, since a weight of 1e-20 is as good as one of 0.3; expf and the sum of up to 1024 terms
// in fp32 cost a few 1e-6. Below 1e-30 the fp32 result may be subnormal or flushed to 0.
inline constexpr double kWeightGate = 2e-5;
inline bool weight_is_right(float got, double want) {
  return std::fabs(static_cast<double>(got) - want) <= kWeightGate * want + 1e-30;
}

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
