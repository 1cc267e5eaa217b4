// How one value of m7's outputs is formed.
#pragma once

#include <string>
#include <vector>

#include "judge/trace.h"
#include "m7_warp_specialized_oracle.h"

namespace moe::oracle {

// A row of `out` is one of the sorted table.
std::vector<std::string> trace_of(const SortedProblem& p,
                                  const std::vector<judge::Bf16>& out,
                                  judge::Place place);

}  // namespace moe::oracle
