// Bug models of the whole layer: what it would output with each known mistake in the order of its
// steps or in one of its functions (those have the codes of the functions' own models).
#pragma once

#include <vector>

#include "judge/models.h"
#include "layer_oracle.h"

namespace moe::bugs {

// For this problem only: they share what does not depend on the mistake.
std::vector<judge::MatrixModel<oracle::LayerProblem>> layer_models(const oracle::LayerProblem& p);

extern const judge::Mistake kLayerNothing;   // out as it was before
extern const judge::Mistake kLayerUnstable;  // the same call twice, other bytes

}  // namespace moe::bugs
