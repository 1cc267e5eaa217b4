#include <algorithm>
#include <cfloat>
#include <climits>
#include <cmath>
#include <functional>
#include <limits>

#include "m1_align_bugs.h"

namespace moe::bugs {
namespace {

using oracle::Routing;

// route with its steps open.
struct RouteSteps {
  std::function<double(float)> key = [](float logit) {
    if (std::isnan(logit)) return -std::numeric_limits<double>::infinity();
    return std::clamp(static_cast<double>(logit), -static_cast<double>(FLT_MAX),
                      static_cast<double>(FLT_MAX));
  };
  bool higher_id_first = false;
  int experts_seen = INT_MAX;
  bool softmax_over_chosen = false;
  int renormalize = -1;  // -1: as asked
  bool exp_only = false;
};

Routing route_with(const RouteProblem& p, const RouteSteps& steps) {
  Routing result;
  const int experts = std::min(p.num_experts, steps.experts_seen);
  for (int t = 0; t < p.num_tokens; ++t) {
    const float* row =
        p.logits.data() + static_cast<size_t>(t) * static_cast<size_t>(p.num_experts);
    std::vector<int32_t> order;
    for (int e = 0; e < experts; ++e) order.push_back(e);
    if (steps.higher_id_first) std::reverse(order.begin(), order.end());
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return steps.key(row[a]) > steps.key(row[b]); });
    const double largest = steps.key(row[order[0]]);
    double sum = 0.0;
    double chosen = 0.0;
    std::vector<double> terms;
    for (int i = 0; i < experts; ++i) {
      const float logit = row[order[static_cast<size_t>(i)]];
      const double term = std::isnan(logit) ? 0.0 : std::exp(steps.key(logit) - largest);
      sum += term;
      if (i >= p.top_k) continue;
      terms.push_back(term);
      chosen += term;
    }
    const bool renormalize = steps.renormalize < 0 ? p.renormalize : steps.renormalize != 0;
    const double divisor = steps.exp_only                             ? 1.0
                           : renormalize || steps.softmax_over_chosen ? chosen
                                                                      : sum;
    for (int slot = 0; slot < p.top_k; ++slot) {
      const bool known = slot < experts;
      result.topk_ids.push_back(known ? order[static_cast<size_t>(slot)] : kAny);
      result.topk_weights.push_back(
          known && divisor > 0.0 ? terms[static_cast<size_t>(slot)] / divisor : 0.0);
    }
  }
  return result;
}

std::vector<RouteModel> make_route_models() {
  std::vector<RouteModel> models;
  const auto add = [&](judge::Mistake mistake, RouteSteps steps) {
    models.push_back({mistake, [steps](const RouteProblem& p) { return route_with(p, steps); }});
  };
  RouteSteps steps;
  steps.higher_id_first = true;
  add({"M1-TIES", "m1.topk", "top-k", "Equal logits: the lower expert id comes first."}, steps);
  steps = {};
  steps.softmax_over_chosen = true;
  add({"M1-SOFTMAX-CHOSEN", "m1.weights", "weights",
       "Without `renormalize` the softmax runs over all logits of the row, not over the chosen "
       "ones."},
      steps);
  steps = {};
  steps.renormalize = 0;
  add({"M1-RENORM-NEVER", "m1.weights", "weights",
       "`renormalize` is ignored: divide the K weights by their sum."},
      steps);
  steps = {};
  steps.exp_only = true;
  steps.renormalize = 0;
  add({"M1-NO-DIVISOR", "m1.weights", "weights",
       "The weights are not divided by the sum of the row."},
      steps);
  steps = {};
  steps.key = [](float logit) {
    return std::isnan(logit) ? std::numeric_limits<double>::infinity() : static_cast<double>(logit);
  };
  add({"M1-NAN-FIRST", "m1.topk", "top-k",
       "NaN ranks below every number; here it is chosen first."},
      steps);
  for (const int seen : {32, 128, 256, 512}) {
    static const char* const kSentences[] = {
        "Experts from 32 on are never chosen.", "Experts from 128 on are never chosen.",
        "Experts from 256 on are never chosen.", "Experts from 512 on are never chosen."};
    const int index = seen == 32 ? 0 : seen == 128 ? 1 : seen == 256 ? 2 : 3;
    steps = {};
    steps.experts_seen = seen;
    add({"M1-EXPERTS-SEEN", "m1.topk", "top-k", kSentences[index]}, steps);
  }
  models.push_back({{"M1-SAME-EXPERT", "m1.topk", "top-k",
                     "The same expert is chosen for every slot: strike out what is taken."},
                    [](const RouteProblem& p) {
                      Routing r =
                          oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, false);
                      for (size_t i = 0; i < r.topk_ids.size(); ++i) {
                        const size_t first =
                            i / static_cast<size_t>(p.top_k) * static_cast<size_t>(p.top_k);
                        r.topk_ids[i] = r.topk_ids[first];
                        r.topk_weights[i] = r.topk_weights[first];
                        if (p.renormalize) r.topk_weights[i] = 1.0 / p.top_k;
                      }
                      return r;
                    }});
  models.push_back(
      {{"M1-ROUTE-ZERO", "m1.weights", "weights", "Every weight is 0."}, [](const RouteProblem& p) {
         Routing r = oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, false);
         for (double& weight : r.topk_weights) weight = 0.0;
         return r;
       }});
  models.push_back(
      {{"M1-ROUTE-NOTHING", "m1.topk", "top-k", "route wrote nothing."}, [](const RouteProblem& p) {
         Routing r = oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, false);
         std::fill(r.topk_ids.begin(), r.topk_ids.end(), kPoisonId);
         return r;
       }});
  return models;
}

}  // namespace

const std::vector<RouteModel>& route_models() {
  static const std::vector<RouteModel> models = make_route_models();
  return models;
}

}  // namespace moe::bugs
