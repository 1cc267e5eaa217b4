// Mistakes in storing the rows of a grouped GEMM that show without a model of all values, for
// stages whose `out` has one row for each flat id: what the values and the bytes around `out` say.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "judge/compare.h"
#include "judge/verdict.h"

namespace moe {

// What these mistakes are called in a stage.
struct RowFaults {
  const judge::Mistake& pad_rows_stored;  // one row behind the end of out
  const judge::Mistake& columns_spill;    // columns behind N reach into the next row
  const judge::Mistake& uninitialised;    // NaN that no input has
  const judge::Mistake& unrouted_row;     // a row that no flat id names
};

// Adds what the pattern of wrong values alone says. `block_n`: columns of a tile.
inline void add_row_faults(const RowFaults& faults,
                           const judge::Difference& difference,
                           int n,
                           int block_n,
                           std::vector<judge::Mistake>& mistakes) {
  // Zeros in the first columns of rows: what lies behind column N of the row before.
  const int spill = (block_n - n % block_n) % block_n;
  if (difference.zero > 0 && difference.zero == difference.wrong_elements &&
      difference.columns.back() < spill) {
    mistakes.push_back(faults.columns_spill);
  }
  if (mistakes.empty() && difference.nan - difference.untouched > 0) {
    mistakes.push_back(faults.uninitialised);
  }
}

// A verdict on a row without a routed flat id; a pass where `out` still holds the poison there.
template <class Problem, class T>
judge::Verdict judge_unrouted_rows(const RowFaults& faults,
                                   const Problem& p,
                                   const std::vector<T>& out,
                                   T poison) {
  for (size_t i = 0; i < out.size(); ++i) {
    const int flat_id = static_cast<int>(i / static_cast<size_t>(p.n));
    if (p.routed(flat_id) || out[i] == poison) continue;
    return judge::wrong(faults.unrouted_row,
                        {"flat id " + std::to_string(flat_id) + " has no expert, yet out[" +
                         std::to_string(flat_id) + "][" +
                         std::to_string(i % static_cast<size_t>(p.n)) + "] changed"});
  }
  return {};
}

// A verdict on bytes written outside `out`: named by the values if they say more, else padding rows
// (they reach one row behind the end) or columns behind N.
inline judge::Verdict explain_bytes_outside(const RowFaults& faults,
                                            judge::Verdict verdict,
                                            const std::function<judge::Verdict()>& judge_values,
                                            int64_t row_bytes) {
  if (verdict.outside_of != "out") return verdict;
  judge::Verdict of_values = judge_values();
  const bool named = !of_values.code.empty();
  if (named) {
    of_values.evidence.insert(of_values.evidence.begin(), verdict.evidence.begin(),
                              verdict.evidence.end());
    return of_values;
  }
  if (verdict.outside_first < 0) return verdict;
  const bool one_row = verdict.outside_last < row_bytes && of_values.pass();
  return judge::wrong(one_row ? faults.pad_rows_stored : faults.columns_spill, verdict.evidence);
}

}  // namespace moe
