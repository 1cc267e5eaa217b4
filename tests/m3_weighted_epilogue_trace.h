// How one value of m3's outputs is formed, and one of the whole layer.
#pragma once

#include <string>
#include <vector>

#include "judge/trace.h"
#include "layer_oracle.h"
#include "m3_weighted_epilogue_oracle.h"

namespace moe::oracle {

using Bf16Values = std::vector<judge::Bf16>;

std::vector<std::string> trace_of(const SiluProblem& p, const Bf16Values& h, judge::Place place);
std::vector<std::string> trace_of(const WeightedProblem& p,
                                  const Bf16Values& out,
                                  judge::Place place);
std::vector<std::string> trace_of(const CombineProblem& p,
                                  const Bf16Values& out,
                                  judge::Place place);
std::vector<std::string> trace_of(const LayerProblem& p, const Bf16Values& out, judge::Place place);

}  // namespace moe::oracle
