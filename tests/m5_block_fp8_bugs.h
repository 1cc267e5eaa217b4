// Bug models of m5_block_fp8: what each known mistake would output.
#pragma once

#include <functional>
#include <vector>

#include "judge/models.h"
#include "judge/verdict.h"
#include "m5_block_fp8_oracle.h"

namespace moe::bugs {

// ---- Quantisers.

// What outputs hold before a call: a code that is never right (NaN gives 0x7f) and a NaN.
inline constexpr judge::Fp8 kPoisonCode = 0xff;
inline constexpr judge::Fp32 kPoisonBits = 0x7fe5c3e1;

struct QuantizeModel {
  judge::Mistake mistake;
  std::function<oracle::Quantized(const oracle::QuantizeProblem&)> output;
};
const std::vector<QuantizeModel>& quantize_models();

// power_of_two_at_least called alone.
extern const judge::Mistake kPowerBelow;
extern const judge::Mistake kPowerNext;
extern const judge::Mistake kPowerRounds;
extern const judge::Mistake kPowerWrong;

// ---- GEMM.

using Fp8GemmModel = judge::MatrixModel<oracle::Fp8GemmProblem>;
const std::vector<Fp8GemmModel>& fp8_gemm_models();

// Mistakes that show in memory and not in a value, or without a model.
extern const judge::Mistake kFp8PadRowsStored;  // writes one row behind the end of out
extern const judge::Mistake kFp8ColumnsSpill;   // writes behind column N
extern const judge::Mistake kFp8Unrouted;       // writes rows that no flat id names
extern const judge::Mistake kFp8NanLost;        // a NaN code gives a number
extern const judge::Mistake kFp8Uninitialised;  // NaN that no input has
extern const judge::Mistake kFp8Offset32;       // an offset in 32 bits

}  // namespace moe::bugs
