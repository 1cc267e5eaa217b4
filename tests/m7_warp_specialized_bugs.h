// Bug models of m7_warp_specialized: what each known mistake would output, or how it shows.
#pragma once

#include <string>
#include <vector>

#include "judge/models.h"
#include "m7_warp_specialized_oracle.h"

namespace moe::bugs {

using SortedModel = judge::MatrixModel<oracle::SortedProblem>;

// Models that can differ from the right output on this problem.
const std::vector<SortedModel>& sorted_models();

// Mistakes that show in what is left of the output.
extern const judge::Mistake kHeldTile;      // tiles that nobody stored
extern const judge::Mistake kSortedNan;     // NaN that no input has
extern const judge::Mistake kSortedNoEnd;   // works on blocks behind the end
extern const judge::Mistake kSortedNobody;  // works on blocks without an expert
extern const judge::Mistake kSortedFar;     // an offset in 32 bits

// The mistake that the emulator's report, or a hang, speaks of; nullptr where it can't be said.
const judge::Mistake* mistake_of_fault(const std::string& fault);

}  // namespace moe::bugs
