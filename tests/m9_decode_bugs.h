// Mistakes of m9_decode that no model of the layer explains: which tokens, columns and runs are
// wrong, and what is known of the terms that are missing.
#pragma once

#include <vector>

#include "judge/bf16.h"
#include "judge/models.h"
#include "judge/verdict.h"
#include "layer_oracle.h"

namespace moe::bugs {

// What a wrong output is compared with.
std::vector<judge::MatrixModel<oracle::LayerProblem>> decode_models(bool is_gemv);

// Tries to name a wrong output. Returns `verdict`, or a better one.
judge::Verdict explain_decode(const oracle::LayerProblem& p,
                              const std::vector<judge::Bf16>& out,
                              judge::Verdict verdict);

// The same for a death that nothing else explains.
judge::Verdict explain_decode_fault(judge::Verdict verdict);

}  // namespace moe::bugs
