// What the calibrations of moe_layer share: its gates and the mistakes.
#pragma once

#include <functional>
#include <vector>

#include "../layer_cases.h"
#include "../layer_oracle.h"
#include "calibrated_sums.h"
#include "calibration.h"

namespace moe::judge {

template <class Change>
std::function<std::vector<Bf16>(const oracle::LayerProblem&)> layer_mistaken(Change change) {
  oracle::LayerMistake mistake;
  change(mistake);
  return [mistake](const oracle::LayerProblem& p) {
    return stored(oracle::moe_layer(p, mistake).values);
  };
}

// Mistakes of the layer itself, which is the order of the steps: the steps' own precision is
// calibrated with the stages.
inline Calibration<oracle::LayerProblem, Bf16> layer_calibration(const char* name) {
  Calibration<oracle::LayerProblem, Bf16> c;
  c.name = name;
  c.gates = kLayerGates;
  c.want = [](const oracle::LayerProblem& p) { return oracle::moe_layer(p); };
  c.judged = [](const oracle::LayerProblem& p) {
    return std::vector<uint8_t>(static_cast<size_t>(p.num_tokens), 1);
  };
  c.wrong = {
      {"the weight inside SiLU", layer_mistaken([](oracle::LayerMistake& m) {
         m.weight_in_gemm1 = true;
         m.weight_in_gemm2 = false;
       })},
      {"the weight twice",
       layer_mistaken([](oracle::LayerMistake& m) { m.weight_in_gemm1 = true; })},
      {"no weight", layer_mistaken([](oracle::LayerMistake& m) { m.weight_in_gemm2 = false; })},
      {"renormalised or not",
       layer_mistaken([](oracle::LayerMistake& m) { m.flip_renormalize = true; })},
  };
  return c;
}

}  // namespace moe::judge
