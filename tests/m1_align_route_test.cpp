// Tests of route: cases, and how an output is judged.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "judge/suite.h"
#include "m1_align_bugs.h"
#include "m1_align_judge.h"
#include "m1_align_oracle.h"
#include "m1_align_trace.h"

namespace moe {
namespace {

using bugs::RouteProblem;
using judge::Call;
using judge::Outputs;
using judge::Verdict;

constexpr int32_t kPoison = bugs::kPoisonId;

enum class Logits {
  kNormal,
  kTies,
  kNegative,
  kInfinities,
  kSomeNan,
  kAllNan,
  kHuge,
  kSmallSpread
};

struct RouteCase {
  const char* group;
  const char* name;
  int num_tokens;
  int num_experts;
  int top_k;
  bool renormalize;
  Logits logits;
  bool refused = false;
};

constexpr RouteCase kRouteCases[] = {
    {"tiny", "route_t4k2", 4, 3, 2, true, Logits::kNormal},
    {"tiny", "route_one", 1, 1, 1, false, Logits::kNormal},
    {"edge", "route_no_tokens", 0, 8, 2, true, Logits::kNormal},
    {"edge", "route_ties", 9, 40, 6, false, Logits::kTies},
    {"edge", "route_all_negative", 5, 8, 2, true, Logits::kNegative},
    {"edge", "route_infinities", 12, 10, 3, true, Logits::kInfinities},
    {"edge", "route_some_nan", 12, 10, 4, false, Logits::kSomeNan},
    {"edge", "route_all_nan", 3, 8, 3, true, Logits::kAllNan},
    {"edge", "route_huge", 6, 20, 4, true, Logits::kHuge},
    {"edge", "route_k_equals_e", 6, 7, 7, false, Logits::kNormal},
    {"edge", "route_k17_e32", 5, 32, 17, true, Logits::kNormal},
    {"edge", "route_e33", 6, 33, 4, false, Logits::kNormal},
    {"edge", "route_e257", 6, 257, 8, true, Logits::kNormal},
    {"edge", "route_e384_ties", 2, 384, 6, true, Logits::kTies},
    {"edge", "route_e384_many_tokens", 1100, 384, 8, true, Logits::kNormal},
    {"edge", "route_e1024_k32", 5, 1024, 32, true, Logits::kNormal},
    {"random", "route_mixtral", 70, 8, 2, true, Logits::kNormal},
    {"random", "route_qwen3", 37, 128, 8, true, Logits::kNormal},
    {"random", "route_plain", 33, 60, 5, false, Logits::kSmallSpread},
    {"refused", "route_e1025", 2, 1025, 2, false, Logits::kNormal, true},
    {"refused", "route_k33", 2, 64, 33, false, Logits::kNormal, true},
};

RouteProblem make_route(const RouteCase& c, uint64_t seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  judge::Random random(seed);
  RouteProblem p = {{}, c.num_tokens, c.num_experts, c.top_k, c.renormalize};
  for (int i = 0; i < c.num_tokens * c.num_experts; ++i) {
    const auto normal = static_cast<float>(random.normal());
    const int pick = random.integer(0, 9);
    float logit = 2.0f * normal;
    switch (c.logits) {
      case Logits::kNormal:
        break;
      case Logits::kSmallSpread:
        logit = 0.01f * normal;
        break;
      case Logits::kTies:
        logit = pick < 2 ? -0.0f : static_cast<float>(pick % 3);
        break;
      case Logits::kNegative:
        logit = -1.0f - std::fabs(normal);
        break;
      case Logits::kInfinities:
        logit = pick < 2 ? kInfinity : pick < 5 ? -kInfinity : normal;
        break;
      case Logits::kSomeNan:
        logit = pick < 6 ? kNan : normal;
        break;
      case Logits::kAllNan:
        logit = kNan;
        break;
      case Logits::kHuge:
        logit = 1e38f * normal;
        break;
    }
    p.logits.push_back(logit);
  }
  // The last expert is the best of every second token, so that one that is never looked at is
  // missed.
  if (c.logits == Logits::kNormal) {
    for (int token = 0; token < c.num_tokens; token += 2) {
      p.logits[static_cast<size_t>((token + 1) * c.num_experts - 1)] = 9.0f;
    }
  }
  return p;
}

constexpr float kPoisonWeight = -7.25e11f;

Call call_route(const RouteProblem& p, bool refused) {
  const size_t count =
      refused ? 4096 : static_cast<size_t>(p.num_tokens) * static_cast<size_t>(p.top_k);
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens, p.num_experts, p.top_k, p.renormalize ? 1 : 0};
  call.buffers = {shaped(judge::output<int32_t>("topk_ids", count, kPoison), p.top_k),
                  shaped(judge::output<float>("topk_weights", count, kPoisonWeight), p.top_k),
                  shaped(judge::input("logits", p.logits), p.num_experts)};
  return call;
}

Verdict judge_route(const RouteProblem& p, const Outputs& outputs) {
  const auto ids = outputs.values<int32_t>(0);
  const auto weights = outputs.values<float>(1);
  const auto want = oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
  std::vector<std::string> evidence;
  size_t wrong_ids = 0;
  size_t wrong_weights = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string place = "[" + std::to_string(i / static_cast<size_t>(p.top_k)) + "][" +
                              std::to_string(i % static_cast<size_t>(p.top_k)) + "]: got ";
    if (ids[i] != want.topk_ids[i] && wrong_ids++ == 0) {
      evidence.push_back("first wrong topk_ids" + place +
                         (ids[i] == kPoison ? "nothing (never written)" : std::to_string(ids[i])) +
                         ", want " + std::to_string(want.topk_ids[i]));
    }
    if (!oracle::weight_is_right(weights[i], want.topk_weights[i]) && wrong_weights++ == 0) {
      evidence.push_back(
          "first wrong topk_weights" + place +
          (weights[i] == kPoisonWeight ? "nothing (never written)" : std::to_string(weights[i])) +
          ", want " + std::to_string(want.topk_weights[i]));
    }
  }
  if (wrong_ids + wrong_weights == 0) return {};
  std::vector<uint8_t> wrong;
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool right =
        ids[i] == want.topk_ids[i] && oracle::weight_is_right(weights[i], want.topk_weights[i]);
    wrong.push_back(right ? 0 : 1);
  }
  judge::note_wrong("topk_ids and topk_weights", p.num_tokens, p.top_k, wrong);
  evidence.insert(evidence.begin(), std::to_string(wrong_ids) + " ids and " +
                                        std::to_string(wrong_weights) + " weights of " +
                                        std::to_string(ids.size()) + " wrong");
  std::vector<judge::Mistake> mistakes;
  for (const bugs::RouteModel& model : bugs::route_models()) {
    const oracle::Routing said = model.output(p);
    Share share;
    for (size_t i = 0; i < ids.size(); ++i) {
      share.add(ids[i], want.topk_ids[i], said.topk_ids[i]);
      if (wrong_ids > 0) continue;  // then the ids speak, and weights follow from them
      const bool right = oracle::weight_is_right(weights[i], want.topk_weights[i]);
      const bool same = oracle::weight_is_right(weights[i], said.topk_weights[i]);
      share.add(same ? 1 : 0, right ? (same ? 1 : 0) : -1, 1);
    }
    if (share.names_it()) mistakes.push_back(model.mistake);
  }
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  const bool nan =
      std::any_of(weights.begin(), weights.end(), [](float w) { return std::isnan(w); });
  if (wrong_ids == 0 && nan) return judge::wrong(bugs::kNanWeight, evidence);
  return wrong_ids == 0
             ? judge::wrong_in("m1.weights", "weights",
                               "The chosen experts are right, their weights are not.", evidence)
             : judge::wrong_in("m1.topk", "top-k", "Wrong experts are chosen.", evidence);
}

class M1Route : public testing::TestWithParam<RouteCase> {};

judge::StageCase<RouteProblem> stage_case_of(const RouteCase& c) {
  judge::StageCase<RouteProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = "route T=" + std::to_string(c.num_tokens) +
                     " E=" + std::to_string(c.num_experts) + " K=" + std::to_string(c.top_k) +
                     (c.renormalize ? " renormalize" : "");
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_route(c, seed); };
  stage_case.call = [c](const RouteProblem& p) { return call_route(p, c.refused); };
  stage_case.judge = judge_route;
  stage_case.trace = [](const RouteProblem& p, const Outputs* outputs, judge::Place place) {
    oracle::Routing got;
    if (outputs != nullptr) {
      const auto weights = outputs->values<float>(1);
      got = {outputs->values<int32_t>(0), {weights.begin(), weights.end()}};
    }
    return oracle::trace_of(p, outputs == nullptr ? nullptr : &got, place);
  };
  return stage_case;
}

TEST_P(M1Route, ChoosesTheLargestLogits) {
  judge::run_case(stage_case_of(GetParam()));
}

#define INSTANTIATE_GROUP(group)                                                             \
  INSTANTIATE_TEST_SUITE_P(group, M1Route, testing::ValuesIn(cases_of(kRouteCases, #group)), \
                           name_of_case)
INSTANTIATE_GROUP(tiny);
INSTANTIATE_GROUP(edge);
INSTANTIATE_GROUP(random);
INSTANTIATE_GROUP(refused);

INSTANTIATE_TEST_SUITE_P(hidden,
                         M1Route,
                         testing::ValuesIn(judge::hidden_cases(kRouteCases,
                                                               [](RouteCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 40);
                                                                 c.num_experts +=
                                                                     random.integer(0, 40);
                                                               })),
                         name_of_case);

// ---- Random cases

judge::CaseResult run_random_route(const std::string& name, const std::vector<int>& g) {
  RouteCase c = {"fuzz",    judge::kept(name.substr(5)), g[0], std::max(g[1], g[2]), g[2],
                 g[3] != 0, static_cast<Logits>(g[4])};
  c.refused = g[5] > 0;
  if (g[5] == 1) c.num_experts = 1025;
  if (g[5] == 2) c.top_k = 33, c.num_experts = 64;
  return judge::judge_case(stage_case_of(c));
}

}  // namespace

judge::FuzzTarget random_routes() {
  return {"route",
          {{"T", 0, 80},
           {"E", 1, 1024},
           {"K", 1, 32},
           {"renormalize", 0, 1},
           {"logits", 0, 7},
           {"broken", 0, 2, true}},
          run_random_route};
}

}  // namespace moe
