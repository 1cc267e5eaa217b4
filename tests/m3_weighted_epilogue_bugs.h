// Bug models of m3_weighted_epilogue: what each known mistake would output. Those of the whole
// layer are in layer_bugs.h.
#pragma once

#include <vector>

#include "judge/models.h"
#include "m3_weighted_epilogue_oracle.h"

namespace moe::bugs {

const std::vector<judge::MatrixModel<oracle::SiluProblem>>& silu_models();
const std::vector<judge::MatrixModel<oracle::WeightedProblem>>& weighted_models();
const std::vector<judge::MatrixModel<oracle::CombineProblem>>& combine_models();

// Mistakes that show as something else than another value.
extern const judge::Mistake kSiluOverflow;    // no number where there is one
extern const judge::Mistake kSiluNothing;     // h as it was before
extern const judge::Mistake kCombineNothing;  // out as it was before
extern const judge::Mistake kWeightedSpill;   // writes behind column N

}  // namespace moe::bugs
