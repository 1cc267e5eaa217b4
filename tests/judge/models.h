// models.h: a wrong matrix named by the bug model that says the same, else by its shape.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare.h"
#include "look.h"
#include "patterns.h"
#include "verdict.h"

namespace moe::judge {

// A known mistake and what it would output.
template <class Problem>
struct MatrixModel {
  Mistake mistake;
  std::function<Matrix(const Problem&)> output;
};

// See diagnosis.h.
bool worth_trying(const Mistake& mistake);

// How wrong, and in which rows and columns.
inline std::vector<std::string> shape_of_error(const Difference& d, const char* name, int columns) {
  std::vector<std::string> lines = {describe(d, name)};
  if (!d.rows.empty()) {
    lines.push_back("wrong: " + std::to_string(d.rows.size()) + " rows, from row " +
                    std::to_string(d.rows.front()) + " to row " + std::to_string(d.rows.back()));
    if (!d.columns.empty() && static_cast<int>(d.columns.size()) < columns) {
      lines.back() += "; columns " + std::to_string(d.columns.front()) + " to " +
                      std::to_string(d.columns.back()) + ", " + std::to_string(d.columns.size()) +
                      " of " + std::to_string(columns);
    }
  }
  const auto share = [&](int64_t count, const char* what) {
    if (count > 0) lines.push_back(std::to_string(count) + " of the wrong values " + what);
  };
  share(d.untouched, "were never written");
  share(d.nan - d.untouched, "are NaN");
  share(d.zero, "are 0");
  return lines;
}

// What an output is called and how it is judged.
struct MatrixRules {
  const char* name;
  Bf16 poison;
  bool exact;
  Gates gates = {};
  double slack = kModelSlack;  // for models
};

// How values of one type are compared with the reference and with models.
template <class T>
struct ValueRules {
  T poison;
  bool exact;
  Gates gates;
  double slack;
};

inline Bf16 stored(double value, Bf16 /*type*/) {
  return to_bf16(value);
}
inline Fp32 stored(double value, Fp32 /*type*/) {
  return to_fp32(value);
}

// Does the model say something wrong here at all? On some inputs a mistake changes nothing.
template <class T>
bool is_wrong(const Matrix& model,
              const Matrix& want,
              const std::vector<uint8_t>& judged,
              const ValueRules<T>& rules) {
  std::vector<T> out;
  for (size_t i = 0; i < model.values.size(); ++i) {
    const double said = model.values[i] == kAnything ? want.values[i] : model.values[i];
    out.push_back(said == kUntouched ? rules.poison : stored(said, rules.poison));
  }
  return out.size() == want.values.size() &&
         !compare(out, want, judged, rules.poison, rules.exact, rules.gates).right;
}

// The mistakes whose models say what `out` says, each once. Models that agree bit for bit go first
// where everything but the last rounding is exact, for some mistakes are smaller than the slack;
// and where no single value is far off, such models alone can tell.
template <class Problem, class T>
std::vector<Mistake> explaining(const std::vector<MatrixModel<Problem>>& models,
                                const Problem& problem,
                                const std::vector<T>& out,
                                const Matrix& want,
                                const Difference& difference,
                                const std::vector<uint8_t>& judged,
                                const ValueRules<T>& rules) {
  const bool mild = difference.wrong_elements == 0;
  const bool bit_by_bit = rules.exact || (mild && sizeof(T) == 2);
  std::vector<Mistake> mistakes;
  for (const double slack : {kModelExact, rules.slack}) {
    if (slack == kModelExact ? !bit_by_bit : mild && sizeof(T) == 2) continue;
    for (const MatrixModel<Problem>& model : models) {
      const bool known = std::any_of(mistakes.begin(), mistakes.end(), [&](const Mistake& other) {
        return std::string_view(other.code) == model.mistake.code;
      });
      if (known || !worth_trying(model.mistake)) continue;
      const Matrix said = model.output(problem);
      const Agreement agreed = agreement(out, said, difference, judged, rules.poison, slack);
      const bool agrees = (mild || agreed.on_wrong >= 0.99) && agreed.on_all >= 0.99;
      if (agrees && is_wrong(said, want, judged, rules)) mistakes.push_back(model.mistake);
    }
    if (!mistakes.empty()) break;
  }
  return mistakes;
}

// A wrong matrix that no model explains.
template <class T>
Verdict wrong_without_name(const std::string& sentence,
                           std::vector<std::string> evidence,
                           const std::vector<T>& out,
                           const Matrix& want,
                           const Difference& difference,
                           const std::vector<uint8_t>& judged) {
  for (std::string& line : patterns_of_error(out, want, difference, judged)) {
    evidence.push_back(std::move(line));
  }
  return wrong(sentence, evidence);
}

template <class Problem>
Verdict judge_matrix(const std::vector<MatrixModel<Problem>>& models,
                     const Problem& problem,
                     const std::vector<Bf16>& out,
                     const Matrix& want,
                     const std::vector<uint8_t>& judged,
                     const MatrixRules& rules) {
  const Difference difference = compare(out, want, judged, rules.poison, rules.exact, rules.gates);
  if (difference.right) return {};
  note_wrong(rules.name, want.rows, want.columns, difference.wrong, judged);
  const auto evidence = shape_of_error(difference, rules.name, want.columns);
  const ValueRules<Bf16> values = {rules.poison, rules.exact, rules.gates, rules.slack};
  const auto mistakes = explaining(models, problem, out, want, difference, judged, values);
  if (!mistakes.empty()) return wrong(mistakes, evidence);
  const std::string sentence = std::string("`") + rules.name + "` is wrong.";
  return wrong_without_name(sentence, evidence, out, want, difference, judged);
}

}  // namespace moe::judge
