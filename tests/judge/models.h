// models.h: a wrong matrix named by the bug model that says the same, else by its shape.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compare.h"
#include "look.h"
#include "verdict.h"

namespace moe::judge {

// A known mistake and what it would output.
template <class Problem>
struct MatrixModel {
  Mistake mistake;
  std::function<Matrix(const Problem&)> output;
};

// Models cost time, and after a few failures it is known what to look for: false for a mistake that
// none of the first failed cases named.
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

// Does the model say something wrong here at all? On some inputs a mistake changes nothing.
inline bool is_wrong(const Matrix& model,
                     const Matrix& want,
                     const std::vector<uint8_t>& judged,
                     const MatrixRules& rules) {
  std::vector<Bf16> out;
  for (size_t i = 0; i < model.values.size(); ++i) {
    const double said = model.values[i] == kAnything ? want.values[i] : model.values[i];
    out.push_back(said == kUntouched ? rules.poison : to_bf16(said));
  }
  return out.size() == want.values.size() &&
         !compare(out, want, judged, rules.poison, rules.exact, rules.gates).right;
}

// The mistakes whose models say what `out` says. Where everything but the last rounding is exact,
// models that agree bit for bit go first: some mistakes are smaller than the slack.
template <class Problem>
std::vector<Mistake> explaining(const std::vector<MatrixModel<Problem>>& models,
                                const Problem& problem,
                                const std::vector<Bf16>& out,
                                const Matrix& want,
                                const Difference& difference,
                                const std::vector<uint8_t>& judged,
                                const MatrixRules& rules) {
  std::vector<Mistake> mistakes;
  for (const double slack : {kModelExact, rules.slack}) {
    if (slack == kModelExact && !rules.exact) continue;
    for (const MatrixModel<Problem>& model : models) {
      if (!worth_trying(model.mistake)) continue;
      const Matrix said = model.output(problem);
      const Agreement agreed = agreement(out, said, difference, judged, rules.poison, slack);
      const bool agrees = agreed.on_wrong >= 0.99 && agreed.on_all >= 0.99;
      if (!agrees || !is_wrong(said, want, judged, rules)) continue;
      const bool known = std::any_of(mistakes.begin(), mistakes.end(), [&](const Mistake& other) {
        return std::string_view(other.code) == model.mistake.code;
      });
      if (!known) mistakes.push_back(model.mistake);
    }
    if (!mistakes.empty()) break;
  }
  return mistakes;
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
  const auto mistakes = explaining(models, problem, out, want, difference, judged, rules);
  return mistakes.empty() ? wrong(std::string("`") + rules.name + "` is wrong.", evidence)
                          : wrong(mistakes, evidence);
}

}  // namespace moe::judge
