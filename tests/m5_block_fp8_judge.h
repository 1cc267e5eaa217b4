// How an output of m5_block_fp8's GEMM is explained, for either type of output.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

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

// Does a model say something wrong here at all? On some inputs a mistake changes nothing.
template <class T>
bool is_wrong(const oracle::Fp8GemmProblem& p,
              const judge::Matrix& said,
              const judge::Matrix& want,
              T poison) {
  std::vector<T> out;
  for (const double value : said.values) {
    const bool untouched = value == judge::kUntouched;
    if constexpr (sizeof(T) == 2) out.push_back(untouched ? poison : judge::to_bf16(value));
    if constexpr (sizeof(T) == 4) out.push_back(untouched ? poison : judge::to_fp32(value));
  }
  return !judge::compare(out, want, judged_rows(p), poison, p.exact).right;
}

// The mistakes whose models say what `out` says, each once. Where all sums are exact, models that
// agree bit for bit go first.
template <class T>
std::vector<judge::Mistake> explaining(const oracle::Fp8GemmProblem& p,
                                       const std::vector<T>& out,
                                       const judge::Matrix& want,
                                       const judge::Difference& difference,
                                       T poison) {
  const auto judged = judged_rows(p);
  std::vector<judge::Mistake> mistakes;
  for (const double slack :
       {judge::kModelExact, sizeof(T) == 2 ? judge::kModelSlack : judge::kFp32ModelSlack}) {
    if (slack == judge::kModelExact && !p.exact) continue;
    for (const bugs::Fp8GemmModel& model : bugs::fp8_gemm_models()) {
      const bool known = std::any_of(
          mistakes.begin(), mistakes.end(),
          [&](const judge::Mistake& m) { return std::string(m.code) == model.mistake.code; });
      if (known || !judge::worth_trying(model.mistake)) continue;
      const judge::Matrix said = model.output(p);
      const auto agreed = judge::agreement(out, said, difference, judged, poison, slack);
      // Rows can be wrong as a whole without one value that is far off.
      const bool agrees = agreed.on_wrong >= 0.99 || difference.wrong_elements == 0;
      if (agrees && agreed.on_all >= 0.99 && is_wrong(p, said, want, poison)) {
        mistakes.push_back(model.mistake);
      }
    }
    if (!mistakes.empty()) break;
  }
  return mistakes;
}

}  // namespace moe
