// Which tiles of m8_persistent a wrong output is the fault of, and the mistakes that only show so.
#pragma once

#include <vector>

#include "judge/bf16.h"
#include "judge/verdict.h"
#include "layer_oracle.h"

namespace moe::bugs {

// Tries to name an output that no model of the layer explains. Returns `verdict`, or a better one.
judge::Verdict explain_persistent(const oracle::LayerProblem& p,
                                  const std::vector<judge::Bf16>& out,
                                  judge::Verdict verdict);

// The same for a death or a hang, of which the emulator's report tells.
judge::Verdict explain_persistent_fault(judge::Verdict verdict);

}  // namespace moe::bugs
