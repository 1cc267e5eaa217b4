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

// Besides open codes (see there) sums are off, and with those of GEMM1 the scales of h; y is
// rounded to bf16. Where each output is one term nothing is.
inline judge::Gates gates_of(const Fp8LayerCase& c) {
  const double rounding = c.out_fp32 ? 0.0 : 4e-3;  // of y, which may be larger than out
  if (c.data == Data::kExact) return {1e-6 + rounding, 1e-6 + rounding, 4e-6 + 3 * rounding};
  if (c.data == Data::kPromotion) return judge::kFp32Gates;  // h is exact
  if (c.out_fp32) return {2e-3, 2e-3, 1e-2};
  return {5e-4 + rounding, 1e-3 + 2 * rounding, 8e-3 + 3 * rounding};
}

// Takes the other value of open codes, the best first, as long as that brings a token's outputs
// closer. `rest` is what they are off by. Codes of the same worth are taken in one turn, each if it
// is still worth it then: a wide layer has thousands.
inline void take_open_codes(const std::vector<const oracle::OpenCode*>& codes,
                            std::vector<double>& rest) {
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sums[4] = {};  // the number of columns is a multiple of four; one sum would wait
    for (size_t d = 0; d < a.size(); d += 4) {
      for (size_t i = 0; i < 4; ++i) sums[i] += a[d + i] * b[d + i];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  };
  std::vector<double> squares;
  for (const auto* code : codes) squares.push_back(product(code->change, code->change));
  std::vector<double> sign(codes.size(), 1.0);  // -1: taken, and may be given back
  const auto gain = [&](size_t i) {
    return 2.0 * sign[i] * product(codes[i]->change, rest) - squares[i];
  };
  std::vector<double> gains(codes.size());
  for (size_t turn = 0; turn < 2 * codes.size(); ++turn) {
    for (size_t i = 0; i < codes.size(); ++i) gains[i] = gain(i);
    const double best = *std::max_element(gains.begin(), gains.end());
    if (!(best > 0.0)) return;
    for (size_t i = 0; i < codes.size(); ++i) {
      if (!(gains[i] >= best / 2) || !(gain(i) >= best / 2)) continue;
      for (size_t d = 0; d < rest.size(); ++d) rest[d] -= sign[i] * codes[i]->change[d];
      sign[i] = -sign[i];
    }
  }
}

// The reference, with those of the open codes that bring it closest to the output.
template <class T>
judge::Matrix nearest(const oracle::Fp8LayerReference& reference, const std::vector<T>& out) {
  judge::Matrix want = reference.out;
  const auto columns = static_cast<size_t>(want.columns);
  for (size_t i = 0; i < reference.open.size();) {
    const int token = reference.open[i].token;
    std::vector<const oracle::OpenCode*> codes;
    for (; i < reference.open.size() && reference.open[i].token == token; ++i) {
      codes.push_back(&reference.open[i]);
    }
    const size_t first = static_cast<size_t>(token) * columns;
    std::vector<double> before;
    for (size_t d = first; d < first + columns; ++d) {
      before.push_back(static_cast<double>(judge::to_float(out[d])) - want.values[d]);
    }
    std::vector<double> rest = before;
    take_open_codes(codes, rest);
    for (size_t d = 0; d < columns; ++d) {
      if (std::isfinite(rest[d])) want.values[first + d] += before[d] - rest[d];
    }
  }
  return want;
}

// The reference, each value moved towards the output as far as open codes allow: where an output is
// wrong, this shows best which of its values are.
template <class T>
judge::Matrix moved(const oracle::Fp8LayerReference& reference, const std::vector<T>& out) {
  judge::Matrix want = reference.out;
  const auto columns = static_cast<size_t>(want.columns);
  std::vector<double> reach(want.values.size());
  for (const oracle::OpenCode& code : reference.open) {
    double* row = &reach[static_cast<size_t>(code.token) * columns];
    for (size_t d = 0; d < columns; ++d) row[d] += std::fabs(code.change[d]);
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const auto got = static_cast<double>(judge::to_float(out[i]));
    if (!(reach[i] > 0.0) || std::isnan(got)) continue;
    want.values[i] = std::clamp(got, want.values[i] - reach[i], want.values[i] + reach[i]);
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

// What an output is held against.
template <class T>
judge::Matrix wanted(const Fp8LayerProblem& p,
                     const oracle::Fp8LayerReference& reference,
                     const std::vector<T>& out) {
  return p.exact ? reference.out : nearest(reference, out);
}

}  // namespace moe::m10_cases
