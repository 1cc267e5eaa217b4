// Bug models of m2_grouped_gemm: what each known mistake would output.
#pragma once

#include <vector>

#include "judge/models.h"
#include "m2_grouped_gemm_oracle.h"

namespace moe::bugs {

using GemmModel = judge::MatrixModel<oracle::GemmProblem>;

// Models that can differ from the right output on this problem.
const std::vector<GemmModel>& gemm_models();

// Mistakes that show in memory and not in a value.
extern const judge::Mistake kPadRowsStored;  // writes behind the end of out
extern const judge::Mistake kColumnsSpill;   // writes behind column N
extern const judge::Mistake kOffset32;       // expert * N * D in 32 bits
extern const judge::Mistake kNoEarlyExit;    // works on rows behind num_tokens_post_padded
extern const judge::Mistake kPaddingRead;    // reads through a padding row's null pointer
extern const judge::Mistake kUninitialised;  // NaN that no input has
extern const judge::Mistake kUnroutedRow;    // writes a row that no flat id names

// What a block behind the end would store in row flat_id, when the tables there are stale.
judge::Matrix from_stale_tail(const oracle::GemmProblem& p);

}  // namespace moe::bugs
