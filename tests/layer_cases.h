// Tests of moe_layer that every stage with such a function shares, and that layer_test runs on any
// mix of stages: the cases, and how an output is judged.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "judge/compare.h"
#include "judge/suite.h"
#include "layer_oracle.h"

namespace moe {

enum class LayerData {
  kNormal,     // normal, scaled so that every step stays near 1
  kSpread,     // magnitudes of tokens over eight powers of two
  kExact,      // equal weights 1/K, gates of 0 or +-128, one-hot w2: only the last rounding rounds
  kNanLogits,  // rows of logits with NaN, or nothing but NaN, or infinities
  kHotExpert,  // expert E / 2 in nearly every row, with a weight like the others
  kOneHot,     // one logit of each row towers over the rest: weights of 1 and of 1e-26
};

struct LayerCase {
  const char* group;
  const char* name;
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
  bool renormalize;
  LayerData data;
  bool refused = false;
  int calls = 1;          // 2: the same call twice, and both outputs must have the same bytes
  int missing_bytes = 0;  // of the workspace, in refused cases
};

// A layer rounds gate_up and y besides what the oracle rounds, so its gates are wider than a
// GEMM's. Of these cases, over 60 seeds, the worst had: total 8.1e-3, row 1.2e-2, element 2.7e-2.
// The gates are twice that; the mildest mistake (weight inside SiLU) is ten times as far off.
inline constexpr judge::Gates kLayerGates = {1.7e-2, 2.5e-2, 8e-2};
inline constexpr double kLayerSlack = 4e-2;

std::vector<LayerCase> layer_cases_of(const std::string& group);
oracle::LayerProblem make_layer(const LayerCase& c, uint64_t seed);

// To be run with judge::run_case. Asks the runner for the size of the workspace.
judge::StageCase<oracle::LayerProblem> layer_stage_case(const LayerCase& c);

// Layers of random sizes, for stages with one.
using LayerStageCase = std::function<judge::StageCase<oracle::LayerProblem>(const LayerCase&)>;
judge::FuzzTarget random_layers(const LayerStageCase& stage_case_of = layer_stage_case);

}  // namespace moe
