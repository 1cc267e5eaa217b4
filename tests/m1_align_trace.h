// How one value of m1's outputs is formed.
#pragma once

#include <string>
#include <vector>

#include "judge/trace.h"
#include "m1_align_bugs.h"

namespace moe::oracle {

// Row and column of route's outputs are token and slot.
std::vector<std::string> trace_of(const bugs::RouteProblem& p,
                                  const Routing* got,
                                  judge::Place place);

// Row and column of align's table are M block and row in the block.
std::vector<std::string> trace_of(const bugs::AlignProblem& p,
                                  const Alignment* got,
                                  judge::Place place);

}  // namespace moe::oracle
