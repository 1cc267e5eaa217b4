#include "m1_align_oracle.h"

#include <drills/m1_align.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <numeric>

namespace moe::oracle {
namespace {

// The logit as the contract compares it; NaN stays NaN.
double clamped(float logit) {
  if (std::isnan(logit)) return logit;
  return std::clamp(static_cast<double>(logit), -static_cast<double>(FLT_MAX),
                    static_cast<double>(FLT_MAX));
}

}  // namespace

Routing route(const std::vector<float>& logits,
              int num_tokens,
              int num_experts,
              int top_k,
              bool renormalize) {
  Routing routing;
  for (int token = 0; token < num_tokens; ++token) {
    std::vector<double> row;
    for (int e = 0; e < num_experts; ++e) {
      row.push_back(clamped(logits[static_cast<size_t>(token) * static_cast<size_t>(num_experts) +
                                   static_cast<size_t>(e)]));
    }
    std::vector<int32_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      const double left = row[static_cast<size_t>(a)];
      const double right = row[static_cast<size_t>(b)];
      if (std::isnan(left) || std::isnan(right)) return !std::isnan(left) && std::isnan(right);
      return left > right;
    });
    const double largest = row[static_cast<size_t>(order[0])];
    double sum = 0.0;
    for (const double logit : row) {
      if (!std::isnan(logit)) sum += std::exp(logit - largest);
    }
    std::vector<double> weights;
    for (int slot = 0; slot < top_k; ++slot) {
      const double logit = row[static_cast<size_t>(order[static_cast<size_t>(slot)])];
      weights.push_back(std::isnan(logit) ? 0.0 : std::exp(logit - largest) / sum);
    }
    const double chosen = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (int slot = 0; slot < top_k; ++slot) {
      const double weight = weights[static_cast<size_t>(slot)];
      routing.topk_ids.push_back(order[static_cast<size_t>(slot)]);
      routing.topk_weights.push_back(renormalize && chosen > 0.0 ? weight / chosen : weight);
    }
  }
  return routing;
}

Alignment align(
    const std::vector<int32_t>& topk_ids, int num_tokens, int top_k, int num_experts, int block_m) {
  const size_t capacity = align_capacity(num_tokens, top_k, num_experts, block_m);
  const int32_t pad = num_tokens * top_k;
  Alignment result;
  for (int32_t expert = 0; expert < num_experts; ++expert) {
    const size_t first = result.sorted_token_ids.size();
    for (size_t flat_id = 0; flat_id < topk_ids.size(); ++flat_id) {
      if (topk_ids[flat_id] == expert)
        result.sorted_token_ids.push_back(static_cast<int32_t>(flat_id));
    }
    while ((result.sorted_token_ids.size() - first) % static_cast<size_t>(block_m) != 0) {
      result.sorted_token_ids.push_back(pad);
    }
    result.expert_ids.resize(result.sorted_token_ids.size() / static_cast<size_t>(block_m), expert);
  }
  result.num_tokens_post_padded = static_cast<int32_t>(result.sorted_token_ids.size());
  result.sorted_token_ids.resize(capacity, pad);
  result.expert_ids.resize(capacity / static_cast<size_t>(block_m), -1);
  return result;
}

}  // namespace moe::oracle
