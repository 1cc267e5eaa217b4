// Whether pick_tile follows its rule, and which mistake gives what it picks.
#pragma once

#include <drills/m4_group_m.h>

#include <cstdint>
#include <string>
#include <vector>

#include "judge/suite.h"
#include "m4_group_m_bugs.h"
#include "m4_group_m_oracle.h"

namespace moe::m4_cases {

struct LayerSize {
  int num_tokens, num_experts, top_k, hidden_size, intermediate_size;
};

// Both sides of every limit in the tables.
inline std::vector<LayerSize> sizes_to_pick() {
  std::vector<LayerSize> sizes = {
      {1, 8, 2, 64, 64},      {8, 8, 2, 64, 64},      {9, 8, 2, 64, 64},
      {7, 8, 8, 64, 64},      {16, 16, 16, 64, 64},   {15, 16, 16, 64, 64},
      {64, 64, 8, 2048, 768}, {65, 64, 8, 2048, 768}, {100000, 64, 8, 64, 64}};
  for (const DefaultTile& line : kDefaultTiles) {
    for (const int more : {-1, 0, 1}) {
      const int rows = line.rows_per_expert + more;
      if (rows > 2) sizes.push_back({rows * 8 / 2, 8, 2, 64, 64});
    }
  }
  for (const TunedTile& t : kTunedTiles) {
    const LayerSize tuned = {t.num_tokens, t.num_experts, t.top_k, t.hidden_size,
                             t.intermediate_size};
    sizes.push_back(tuned);
    for (int LayerSize::*field : {&LayerSize::num_tokens, &LayerSize::top_k,
                                  &LayerSize::hidden_size, &LayerSize::intermediate_size}) {
      for (const int more : {-1, 1}) {
        LayerSize other = tuned;
        other.*field += more;
        sizes.push_back(other);
      }
    }
  }
  return sizes;
}

using Fields = std::vector<int64_t>;

inline Fields fields_of(const Tile& t) {
  return {t.block_m,       t.gemm1.block_n, t.gemm1.block_k, t.gemm1.group_m,
          t.gemm2.block_n, t.gemm2.block_k, t.gemm2.group_m};
}

inline std::string text_of(const Fields& f) {
  std::string text = "{" + std::to_string(f[0]);
  for (const size_t first : {size_t{1}, size_t{4}}) {
    text += ", {" + std::to_string(f[first]) + ", " + std::to_string(f[first + 1]) + ", " +
            std::to_string(f[first + 2]) + "}";
  }
  return text + "}";
}

inline judge::Verdict check_picks() {
  std::vector<Fields> picks;
  std::vector<std::string> evidence;
  const auto sizes = sizes_to_pick();
  for (const LayerSize& s : sizes) {
    Fields got;
    for (int field = 0; field < 7; ++field) {
      judge::Verdict verdict;
      got.push_back(judge::Suite::get().ask_value(
          3, {s.num_tokens, s.num_experts, s.top_k, s.hidden_size, s.intermediate_size, field},
          verdict));
      if (!verdict.pass()) return verdict;
    }
    picks.push_back(got);
    const Fields want = fields_of(oracle::pick_tile(s.num_tokens, s.num_experts, s.top_k,
                                                    s.hidden_size, s.intermediate_size));
    if (got == want || !evidence.empty()) continue;
    evidence = {"T=" + std::to_string(s.num_tokens) + " E=" + std::to_string(s.num_experts) +
                " K=" + std::to_string(s.top_k) + " H=" + std::to_string(s.hidden_size) +
                " I=" + std::to_string(s.intermediate_size) + ": got " + text_of(got) + ", want " +
                text_of(want)};
  }
  if (evidence.empty()) return {};
  for (const bugs::PickModel& model : bugs::pick_models()) {
    bool same = true;
    for (size_t i = 0; i < sizes.size(); ++i) {
      const LayerSize& s = sizes[i];
      same = same && picks[i] == fields_of(model.pick_tile(s.num_tokens, s.num_experts, s.top_k,
                                                           s.hidden_size, s.intermediate_size));
    }
    if (same) return judge::wrong(model.mistake, evidence);
  }
  return judge::wrong("pick_tile does not follow its rule.", evidence);
}

}  // namespace moe::m4_cases
