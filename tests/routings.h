// Routings that every stage is tested with: topk_ids [T, K] by name.
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "judge/random.h"

namespace moe {

enum class Load {
  kUniform,      // distinct random experts for each token
  kSkewed,       // expert 0 in every token, the rest random
  kOneExpert,    // every slot names one expert: it is listed more than once per token
  kFirstExpert,  // the same for expert 0
  kLastExpert,   // and for expert E - 1
  kEvenOnly,     // every second expert stays empty
  kUnrouted,     // a third of the ids are outside [0, E)
  kNobody,       // all ids are outside [0, E)
  kAscending,    // flat_id % E
  kDescending,   // the same from expert E - 1 down
  kForeign,      // uniform; then leave_foreign_blocks takes every second block away
};

// Those that random cases choose from, the simplest first.
inline constexpr Load kRandomLoads[] = {Load::kUniform,    Load::kSkewed,      Load::kOneExpert,
                                        Load::kLastExpert, Load::kEvenOnly,    Load::kUnrouted,
                                        Load::kAscending,  Load::kFirstExpert, Load::kNobody,
                                        Load::kDescending, Load::kForeign};
inline constexpr int kNumRandomLoads = static_cast<int>(std::size(kRandomLoads));

inline std::vector<int32_t> make_topk_ids(
    Load load, int num_tokens, int top_k, int num_experts, uint64_t seed) {
  judge::Random random(seed);
  std::vector<int32_t> ids;
  const int step = load == Load::kEvenOnly ? 2 : 1;
  const int choices = (num_experts + step - 1) / step;
  constexpr int32_t kOutside[] = {-1, INT32_MIN, 0, 1000};  // 0: E itself, 1000: E + 1000
  for (int token = 0; token < num_tokens; ++token) {
    std::vector<int32_t> all;
    for (int e = 0; e < choices; ++e) all.push_back(e * step);
    for (int slot = 0; slot < top_k; ++slot) {
      const int flat_id = token * top_k + slot;
      if (load == Load::kOneExpert) {
        ids.push_back(num_experts / 2);
      } else if (load == Load::kFirstExpert || load == Load::kLastExpert) {
        ids.push_back(load == Load::kFirstExpert ? 0 : num_experts - 1);
      } else if (load == Load::kAscending) {
        ids.push_back(flat_id % num_experts);
      } else if (load == Load::kDescending) {
        ids.push_back(num_experts - 1 - flat_id % num_experts);
      } else if (load == Load::kNobody || (load == Load::kUnrouted && random.integer(0, 2) == 0)) {
        const int32_t outside = kOutside[random.integer(0, 3)];
        ids.push_back(outside < 0 ? outside : num_experts + outside);
      } else {
        const bool hot = load == Load::kSkewed && slot == 0;
        const size_t i = hot || all.empty() ? 0 : random.bits() % all.size();
        ids.push_back(all.empty() ? 0 : all[i]);
        if (!all.empty()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
  }
  return ids;
}

// Labels every second block of the tables with an expert that is not ours, as a rank of an expert
// parallel layer sees those of others. For the GEMM their flat ids are then not routed.
inline void leave_foreign_blocks(int block_m,
                                 int num_experts,
                                 const std::vector<int32_t>& sorted_token_ids,
                                 int32_t num_tokens_post_padded,
                                 std::vector<int32_t>& expert_ids,
                                 std::vector<int32_t>& topk_ids) {
  for (int32_t first = 0; first < num_tokens_post_padded; first += 2 * block_m) {
    const auto block = static_cast<size_t>(first / block_m);
    expert_ids[block] = block % 4 == 0 ? -1 : num_experts;
    for (int32_t row = first; row < first + block_m; ++row) {
      const auto flat_id = static_cast<size_t>(sorted_token_ids[static_cast<size_t>(row)]);
      if (flat_id < topk_ids.size()) topk_ids[flat_id] = -1;
    }
  }
}

}  // namespace moe
