// Bug models of m1_align: what each known mistake would output. When an output is wrong and a model
// says the same, the model's sentence is the diagnosis.
#pragma once

#include <functional>
#include <vector>

#include "judge/verdict.h"
#include "m1_align_oracle.h"

namespace moe::bugs {

struct AlignProblem {
  std::vector<int32_t> topk_ids;  // [T, K]
  int num_tokens = 0;
  int top_k = 0;
  int num_experts = 0;
  int block_m = 0;
};

// Where a mistake makes a value depend on timing, its model says kAny: not compared.
inline constexpr int32_t kAny = INT32_MIN + 7;

// What outputs hold before a call.
inline constexpr int32_t kPoisonId = -1234567890;

struct AlignModel {
  judge::Mistake mistake;
  std::function<oracle::Alignment(const AlignProblem&)> output;
};
const std::vector<AlignModel>& align_models();

extern const judge::Mistake kNanWeight;  // a weight that is no number
extern const judge::Mistake kUnrouted;   // an id outside [0, E) used as an index: a death

struct RouteProblem {
  std::vector<float> logits;  // [T, E]
  int num_tokens = 0;
  int num_experts = 0;
  int top_k = 0;
  bool renormalize = false;
};

struct RouteModel {
  judge::Mistake mistake;
  std::function<oracle::Routing(const RouteProblem&)> output;
};
const std::vector<RouteModel>& route_models();

}  // namespace moe::bugs
