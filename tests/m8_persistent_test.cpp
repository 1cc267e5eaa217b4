// Tests of m8_persistent: the cases that every layer has, and those of its scheduler and ring:
// numbers of rows around whole and half tiles, boxes and units, numbers of tiles around multiples
// of the blocks, clusters, one hot expert, empty experts, the same call twice.
#include <drills/m8_persistent.h>

#include <cmath>
#include <string>

#include "judge/bf16.h"
#include "judge/suite.h"
#include "layer_cases.h"
#include "m8_persistent_bugs.h"
#include "m8_persistent_cases.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Outputs;
using judge::Verdict;
using oracle::LayerProblem;

// Gates below -20 may count as -20, where SiLU is 4e-8 and not 0: outputs that are exact otherwise
// may be off by that, and by one rounding.
Verdict judge_exact(const LayerProblem& p, const std::vector<Bf16>& out) {
  const auto want = oracle::moe_layer(p);
  for (size_t i = 0; i < out.size(); ++i) {
    const double error = static_cast<double>(judge::to_float(out[i])) - want.values[i];
    if (std::fabs(error) <= judge::bf16_ulp(want.values[i]) + 1e-5) continue;
    const auto columns = static_cast<size_t>(p.hidden_size);
    return judge::wrong(
        "`out` is wrong by more than a rounding, where all but the last are exact.",
        {"out[" + std::to_string(i / columns) + "][" + std::to_string(i % columns) + "]: got " +
         std::to_string(judge::to_float(out[i])) + ", want " + std::to_string(want.values[i])});
  }
  return {};
}

judge::StageCase<LayerProblem> stage_case_of(const LayerCase& c) {
  auto stage_case = layer_stage_case(c);
  const auto judge_layer = stage_case.judge;
  stage_case.judge = [judge_layer](const LayerProblem& p, const Outputs& outputs) {
    LayerProblem inexact = p;
    inexact.exact = false;
    Verdict verdict = judge_layer(inexact, outputs);
    if (verdict.pass() && p.exact) verdict = judge_exact(p, outputs.values<Bf16>(0));
    if (verdict.pass() || !verdict.code.empty()) return verdict;
    return bugs::explain_persistent(p, outputs.values<Bf16>(0), verdict);
  };
  stage_case.explain = [](const LayerProblem&, const Outputs*, const Verdict& verdict) {
    return bugs::explain_persistent_fault(verdict);
  };
  return stage_case;
}

class M8Layer : public testing::TestWithParam<LayerCase> {};

TEST_P(M8Layer, GoesFromLogitsToOutput) {
  judge::run_case(stage_case_of(GetParam()));
}

std::vector<LayerCase> cases_of(const std::string& group) {
  std::vector<LayerCase> chosen = layer_cases_of(group);
  for (const LayerCase& c : m8_cases::kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M8Layer, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M8Layer, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(rows, M8Layer, testing::ValuesIn(cases_of("rows")), name_of_case);
INSTANTIATE_TEST_SUITE_P(tiles, M8Layer, testing::ValuesIn(cases_of("tiles")), name_of_case);
INSTANTIATE_TEST_SUITE_P(ring, M8Layer, testing::ValuesIn(cases_of("ring")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M8Layer, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M8Layer, testing::ValuesIn(cases_of("refused")), name_of_case);

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m8_persistent",
      {"m8.reset", "m8.totals", "m8.cut", "m8.place", "m8.tile_of", "m8.report", "m8.await_rows",
       "m8.next_tile", "m8.store", "m8.half_tile", "m8.long_tile", "m8.multiply", "m8.combine",
       "m8.launches"},
      {moe::random_layers(moe::stage_case_of)});
}
