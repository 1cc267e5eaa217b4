// Patterns in which values are wrong, for mistakes that no model names: all off by one factor, the
// matrix transposed, rows that hold another row's values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "compare.h"

namespace moe::judge {

// Pairs of numbers are alike where they agree to a rounding to bf16 and some noise of sums.
inline bool alike(double got, double want) {
  return std::fabs(got - want) <= 0.01 * std::fabs(want);
}

// "the wrong values are 2 times what they should be", if 99 % of them are.
template <class T>
std::string factor_of_error(const std::vector<T>& out, const Matrix& want, const Difference& d) {
  std::vector<double> factors;
  for (size_t i = 0; i < out.size(); ++i) {
    const double factor = static_cast<double>(to_float(out[i])) / want.values[i];
    if (d.wrong[i] != 0 && want.values[i] != 0.0) factors.push_back(factor);
  }
  if (factors.size() < 8) return "";
  const auto middle = factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2);
  if (std::any_of(factors.begin(), factors.end(), [](double f) { return !std::isfinite(f); })) {
    return "";
  }
  std::nth_element(factors.begin(), middle, factors.end());
  const double factor = *middle;
  const auto same =
      std::count_if(factors.begin(), factors.end(), [&](double f) { return alike(f, factor); });
  if (factor == 0.0 || static_cast<size_t>(same) * 100 < factors.size() * 99) return "";
  char text[80];
  std::snprintf(text, sizeof text, "the wrong values are %.3g times what they should be", factor);
  return text;
}

// Whether 99 % of the judged numbers are those that `place` says of the reference, none of them 0.
template <class T, class Place>
bool holds_others(const std::vector<T>& out,
                  const Matrix& want,
                  const std::vector<uint8_t>& judged,
                  Place place) {
  size_t all = 0;
  size_t same = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    const double other = want.values[place(i)];
    if (judged[i / static_cast<size_t>(want.columns)] == 0 || !(std::fabs(other) < 1e100)) continue;
    if (other == 0.0) continue;
    ++all;
    same += alike(static_cast<double>(to_float(out[i])), other) ? 1 : 0;
  }
  return all >= 8 && same * 100 >= all * 99;
}

// "row 3 holds the values of row 7", for the first wrong row that holds another one's.
template <class T>
std::string moved_row(const std::vector<T>& out,
                      const Matrix& want,
                      const std::vector<uint8_t>& judged,
                      const Difference& d) {
  constexpr int64_t kMostRows = 512;  // looked through
  const auto columns = static_cast<size_t>(want.columns);
  if (d.rows.empty() || columns < 4) return "";
  const int64_t row = d.rows.front();
  for (int64_t other = 0; other < std::min(want.rows, kMostRows); ++other) {
    if (other == row || judged[static_cast<size_t>(other)] == 0) continue;
    size_t same = 0;
    size_t zeros = 0;
    for (size_t c = 0; c < columns; ++c) {
      const double value = want.values[static_cast<size_t>(other) * columns + c];
      const double got = static_cast<double>(to_float(out[static_cast<size_t>(row) * columns + c]));
      same += alike(got, value) ? 1 : 0;
      zeros += value == 0.0 ? 1 : 0;
    }
    if (same == columns && 2 * zeros < columns) {
      return "row " + std::to_string(row) + " holds the values of row " + std::to_string(other);
    }
  }
  return "";
}

template <class T>
std::vector<std::string> patterns_of_error(const std::vector<T>& out,
                                           const Matrix& want,
                                           const Difference& d,
                                           const std::vector<uint8_t>& judged) {
  std::vector<std::string> lines;
  if (out.size() != want.values.size() || d.wrong.size() != out.size()) return lines;
  const auto rows = static_cast<size_t>(want.rows);
  const auto columns = static_cast<size_t>(want.columns);
  const auto transposed = [&](size_t i) { return i % rows * columns + i / rows; };
  if (rows > 1 && columns > 1 && holds_others(out, want, judged, transposed)) {
    lines.emplace_back("the matrix is transposed: its columns stand where rows should");
    return lines;
  }
  for (const std::string& line : {factor_of_error(out, want, d), moved_row(out, want, judged, d)}) {
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace moe::judge
