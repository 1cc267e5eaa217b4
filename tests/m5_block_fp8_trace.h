// How one value of m5's outputs is formed.
#pragma once

#include <string>
#include <vector>

#include "judge/trace.h"
#include "m5_block_fp8_oracle.h"

namespace moe::oracle {

// `got` is what stands in the output, "" where there is none.
std::vector<std::string> trace_of(const Fp8GemmProblem& p,
                                  const std::string& got,
                                  judge::Place place);

// A code and the scale of its block. Row r of matrix i is row i * n + r.
std::vector<std::string> trace_of(const QuantizeProblem& p,
                                  const Quantized* got,
                                  judge::Place place);

}  // namespace moe::oracle
