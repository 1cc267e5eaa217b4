// Bug models of m10_fp8_hopper: what the layer would output with each known mistake.
#pragma once

#include <vector>

#include "judge/models.h"
#include "m10_fp8_hopper_oracle.h"

namespace moe::bugs {

const std::vector<judge::MatrixModel<oracle::Fp8LayerProblem>>& fp8_layer_models();

extern const judge::Mistake kFp8LayerNothing;    // out as it was before
extern const judge::Mistake kFp8LayerUnstable;   // the same call twice, other bytes
extern const judge::Mistake kFp8LayerPromotion;  // long sums lose their last bits
extern const judge::Mistake kFp8LayerNanLost;

// Tries to name, from which rows or columns are wrong, an output that no model explains. Returns
// `verdict`, or a better one. `is_wrong` has a flag for each element.
judge::Verdict explain_fp8_layer(const oracle::Fp8LayerProblem& p,
                                 const std::vector<uint8_t>& is_wrong,
                                 judge::Verdict verdict);

// The same for a death or a hang, of which the emulator's report tells.
judge::Verdict explain_fp8_layer_fault(judge::Verdict verdict);

}  // namespace moe::bugs
