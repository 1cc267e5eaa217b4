// How an output of m5_block_fp8's GEMM is explained, for either type of output.
#pragma once

#include <vector>

#include "judge/models.h"
#include "m5_block_fp8_bugs.h"
#include "m5_block_fp8_oracle.h"

namespace moe {

// Rows that are compared: routed, and not such that must be NaN.
inline std::vector<uint8_t> judged_rows(const oracle::Fp8GemmProblem& p) {
  std::vector<uint8_t> judged;
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    const bool is_nan = !p.nan_rows.empty() && p.nan_rows[static_cast<size_t>(flat_id)] != 0;
    judged.push_back(p.routed(flat_id) && !is_nan ? 1 : 0);
  }
  return judged;
}

// The mistakes whose models say what `out` says.
inline std::vector<judge::Mistake> explaining(const oracle::Fp8GemmProblem& p,
                                              const std::vector<judge::Bf16>& out,
                                              const judge::Matrix& want,
                                              const judge::Difference& difference,
                                              judge::Bf16 poison) {
  const judge::ValueRules<judge::Bf16> rules = {poison, p.exact, {}, judge::kModelSlack};
  return judge::explaining(bugs::fp8_gemm_models(), p, out, want, difference, judged_rows(p),
                           rules);
}
inline std::vector<judge::Mistake> explaining(const oracle::Fp8GemmProblem& p,
                                              const std::vector<judge::Fp32>& out,
                                              const judge::Matrix& want,
                                              const judge::Difference& difference,
                                              judge::Fp32 poison) {
  const judge::ValueRules<judge::Fp32> rules = {poison, p.exact, judge::kFp32Gates,
                                                judge::kFp32ModelSlack};
  return judge::explaining(bugs::fp8_gemm_models(), p, out, want, difference, judged_rows(p),
                           rules);
}

}  // namespace moe
