#include "m9_decode_oracle.h"

#include <algorithm>

#include "m1_align_oracle.h"

namespace moe::oracle {

std::vector<DecodeRun> decode_runs(const LayerProblem& p) {
  const auto ids = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize).topk_ids;
  std::vector<DecodeRun> runs;
  for (int expert = 0; expert < p.num_experts; ++expert) {
    DecodeRun run = {expert, {}};
    for (int id = 0; id < p.num_ids(); ++id) {
      if (ids[static_cast<size_t>(id)] == expert) run.flat_ids.push_back(id);
    }
    if (!run.flat_ids.empty()) runs.push_back(run);
  }
  return runs;
}

int decode_splits(const LayerProblem& p) {
  if (p.num_tokens <= 4) return 0;
  const int pieces = std::min(p.num_experts, p.num_ids()) * ((p.hidden_size + 15) / 16);
  return std::max(1, std::min({8, 8192 / pieces, p.intermediate_size / 512}));
}

}  // namespace moe::oracle
