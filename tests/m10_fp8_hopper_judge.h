// How an output of m10_fp8_hopper's layer is judged, for either type of output.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "judge/compare.h"
#include "m10_fp8_hopper_cases.h"
#include "m10_fp8_hopper_oracle.h"

namespace moe::m10_cases {

// Besides open codes (see there) only the sums of GEMM2 are off, and rounding of y to bf16. Where
// each output is one term nothing is.
inline judge::Gates gates_of(const Fp8LayerCase& c) {
  const double rounding = c.out_fp32 ? 0.0 : 4e-3;  // of y, which may be larger than out
  if (c.data == Data::kExact) return {1e-6 + rounding, 1e-6 + rounding, 4e-6 + 3 * rounding};
  if (c.out_fp32) return judge::kFp32Gates;
  return {5e-4 + rounding, 1e-3 + 2 * rounding, 8e-3 + 3 * rounding};
}

// Open codes go either way, so all outputs together are close to the reference itself: right
// kernels to 4e-3 as a rule, but one open code of a token's largest h makes 4e-2 of that token.
inline judge::Gates gates_of_all() {
  constexpr double kAny = 1e3;
  return {8e-2, kAny, kAny};
}

// The reference, moved towards the output as far as open codes allow.
template <class T>
judge::Matrix moved(const oracle::Fp8LayerReference& reference, const std::vector<T>& out) {
  judge::Matrix want = reference.out;
  for (size_t i = 0; i < out.size(); ++i) {
    const auto got = static_cast<double>(judge::to_float(out[i]));
    const double open = reference.open.values[i];
    if (!(open > 0.0) || std::isnan(got)) continue;
    want.values[i] = std::clamp(got, want.values[i] - open, want.values[i] + open);
  }
  return want;
}

// Tokens without NaN.
inline std::vector<uint8_t> judged_tokens(const Fp8LayerProblem& p, const judge::Matrix& want) {
  std::vector<uint8_t> judged(static_cast<size_t>(p.num_tokens), 1);
  for (size_t i = 0; i < want.values.size(); ++i) {
    if (std::isnan(want.values[i])) judged[i / static_cast<size_t>(p.hidden_size)] = 0;
  }
  return judged;
}

// What an output is held against, and with which gates.
struct Comparison {
  judge::Matrix want;
  judge::Gates gates;
};

// An output is right if it is in all of these.
template <class T>
std::vector<Comparison> comparisons(const Fp8LayerCase& c,
                                    const oracle::Fp8LayerReference& reference,
                                    const std::vector<T>& out) {
  if (c.data == Data::kExact) return {{reference.out, gates_of(c)}};
  return {{moved(reference, out), gates_of(c)}, {reference.out, gates_of_all()}};
}

}  // namespace moe::m10_cases
