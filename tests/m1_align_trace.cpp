#include "m1_align_trace.h"

#include <algorithm>
#include <cmath>

namespace moe::oracle {

using judge::number_text;

namespace {

// The chosen experts of one token and what their weights are made of.
void trace_slots(judge::Trace& trace, const bugs::RouteProblem& p, const Routing& want, int token) {
  const auto experts = static_cast<size_t>(p.num_experts);
  const float* logits = p.logits.data() + static_cast<size_t>(token) * experts;
  double largest = -INFINITY;
  for (size_t e = 0; e < experts; ++e) {
    if (!std::isnan(logits[e])) largest = std::max(largest, static_cast<double>(logits[e]));
  }
  double sum = 0.0;
  for (size_t e = 0; e < experts; ++e) {
    if (!std::isnan(logits[e])) sum += std::exp(static_cast<double>(logits[e]) - largest);
  }
  trace.line("largest of the %d logits of token %d: %g; sum over all of exp(logit - largest): %.6g",
             p.num_experts, token, largest, sum);
  trace.heading({"slot", "expert", "logit", "exp(logit - largest)", "softmax", "weight"});
  for (int slot = 0; slot < p.top_k; ++slot) {
    const auto index = static_cast<size_t>(token * p.top_k + slot);
    const auto expert = static_cast<size_t>(want.topk_ids[index]);
    const double term = std::exp(static_cast<double>(logits[expert]) - largest);
    trace.row({std::to_string(slot), std::to_string(expert),
               number_text(static_cast<double>(logits[expert])), number_text(term),
               number_text(term / sum), number_text(want.topk_weights[index])});
  }
  trace.line("%s", p.renormalize
                       ? "renormalize: each weight is its softmax over the sum of the chosen ones"
                       : "not renormalised: each weight is its softmax over all experts");
}

}  // namespace

std::vector<std::string> trace_of(const bugs::RouteProblem& p,
                                  const Routing* got,
                                  judge::Place place) {
  judge::Trace trace;
  if (!trace.has("topk_ids", place, p.num_tokens, p.top_k)) return trace.take();
  const Routing want = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
  const auto token = static_cast<int>(place.row);
  trace_slots(trace, p, want, token);
  const auto index = static_cast<size_t>(place.row * p.top_k + place.column);
  const std::string where =
      "[" + std::to_string(place.row) + "][" + std::to_string(place.column) + "]";
  trace.result("topk_ids" + where, std::to_string(want.topk_ids[index]),
               got == nullptr ? "" : std::to_string(got->topk_ids[index]));
  trace.result("topk_weights" + where, number_text(want.topk_weights[index]),
               got == nullptr ? "" : number_text(got->topk_weights[index]));
  return trace.take();
}

std::vector<std::string> trace_of(const bugs::AlignProblem& p,
                                  const Alignment* got,
                                  judge::Place place) {
  judge::Trace trace;
  const Alignment want = align(p.topk_ids, p.num_tokens, p.top_k, p.num_experts, p.block_m);
  const auto blocks = static_cast<int64_t>(want.expert_ids.size());
  if (!trace.has("sorted_token_ids, in M blocks,", place, blocks, p.block_m)) return trace.take();
  trace.heading({"expert", "flat ids", "padded", "starts at row", "M blocks"});
  int start = 0;
  for (int expert = 0; expert < p.num_experts; ++expert) {
    const auto count = static_cast<int>(std::count(p.topk_ids.begin(), p.topk_ids.end(), expert));
    const int padded = (count + p.block_m - 1) / p.block_m * p.block_m;
    trace.row({std::to_string(expert), std::to_string(count), std::to_string(padded),
               std::to_string(start), std::to_string(padded / p.block_m)});
    start += padded;
  }
  trace.line("num_tokens_post_padded = %d: the sum of the padded counts", start);
  const auto block = static_cast<size_t>(place.row);
  const auto index = static_cast<size_t>(place.row * p.block_m + place.column);
  const std::string name = "sorted_token_ids[" + std::to_string(index) + "]";
  const int pad = p.num_tokens * p.top_k;
  if (static_cast<int>(index) >= start) {
    trace.line("row %zu lies behind them: the pad id %d, and no expert (-1) for its block", index,
               pad);
  } else {
    trace.line("M block %zu belongs to expert %d", block, want.expert_ids[block]);
    trace.line("the ids of one expert may stand in any order; shown ascending, pad id %d last",
               pad);
  }
  trace.result(name, std::to_string(want.sorted_token_ids[index]),
               got == nullptr ? "" : std::to_string(got->sorted_token_ids[index]));
  trace.result("expert_ids[" + std::to_string(block) + "]", std::to_string(want.expert_ids[block]),
               got == nullptr ? "" : std::to_string(got->expert_ids[block]));
  return trace.take();
}

}  // namespace moe::oracle
