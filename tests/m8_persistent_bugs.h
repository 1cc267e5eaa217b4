// Which tiles of m8_persistent a wrong output is the fault of, and the mistakes that only show so.
#pragma once

#include <vector>

#include "judge/compare.h"
#include "judge/verdict.h"
#include "layer_oracle.h"

namespace moe::bugs {

// Tries to name an output that no model of the layer explains. `is_wrong` has a flag for each
// element of out [T, H]. Returns `verdict`, or a better one.
judge::Verdict explain_by_tiles(const oracle::LayerProblem& p,
                                const std::vector<uint8_t>& is_wrong,
                                judge::Verdict verdict);

// The same for a death or a hang, of which the emulator's report tells.
judge::Verdict explain_persistent_fault(judge::Verdict verdict);

}  // namespace moe::bugs
