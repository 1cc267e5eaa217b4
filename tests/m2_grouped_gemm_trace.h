// How one value of m2's output is formed, term by term; later stages with the same sum use the
// parts.
#pragma once

#include <string>
#include <vector>

#include "judge/trace.h"
#include "m2_grouped_gemm_oracle.h"

namespace moe::oracle {

// What stands in a bf16 output; "" where there is none.
std::string got_text(const std::vector<judge::Bf16>& out, judge::Place place, int columns);

// "1.5 (rounded to bf16)", or the number alone where rounding changes nothing.
std::string bf16_text(double value);

// Which token, slot, expert and row of the tables a flat id has. False where it has no expert.
bool trace_flat_id(judge::Trace& trace, const GemmProblem& p, int flat_id);

// The terms of a[row] * w[expert][column].
void trace_sum(judge::Trace& trace, const GemmProblem& p, int flat_id, int column);

std::vector<std::string> trace_of(const GemmProblem& p,
                                  const std::vector<judge::Bf16>& out,
                                  judge::Place place);

}  // namespace moe::oracle
