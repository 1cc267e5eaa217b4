// Tests of m9_decode: the cases that every layer has (those with more than 64 tokens are refused
// here), and those of its two ways: numbers of tokens around the ways and the tiles of eight, ends
// of rows around steps, runs that share tokens, splits, many experts.
#include <drills/m9_decode.h>

#include <string>

#include "judge/suite.h"
#include "layer_bugs.h"
#include "layer_cases.h"
#include "m9_decode_bugs.h"
#include "m9_decode_cases.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Outputs;
using judge::Verdict;
using oracle::LayerProblem;

constexpr int kMaxTokens = 64;

class M9Layer : public testing::TestWithParam<LayerCase> {};

TEST_P(M9Layer, GoesFromLogitsToOutput) {
  auto stage_case = layer_stage_case(GetParam());
  const auto judge_layer = stage_case.judge;
  stage_case.judge = [judge_layer](const LayerProblem& p, const Outputs& outputs) {
    const Verdict verdict = judge_layer(p, outputs);
    if (verdict.pass()) return verdict;
    return bugs::explain_decode(p, outputs.values<Bf16>(0), verdict);
  };
  stage_case.explain = [](const LayerProblem&, const Outputs*, const Verdict& verdict) {
    return bugs::explain_decode_fault(verdict);
  };
  judge::run_case(stage_case);
}

std::vector<LayerCase> cases_of(const std::string& group) {
  std::vector<LayerCase> chosen = layer_cases_of(group);
  for (LayerCase& c : chosen) c.refused = c.refused || c.num_tokens > kMaxTokens;
  for (const LayerCase& c : m9_cases::kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M9Layer, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M9Layer, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(rows, M9Layer, testing::ValuesIn(cases_of("rows")), name_of_case);
INSTANTIATE_TEST_SUITE_P(tiles, M9Layer, testing::ValuesIn(cases_of("tiles")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M9Layer, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden, M9Layer, testing::ValuesIn(cases_of("hidden")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M9Layer, testing::ValuesIn(cases_of("refused")), name_of_case);

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m9_decode",
      {"m9.mask", "m9.place", "m9.dot", "m9.stream", "m9.h", "m9.share", "m9.order", "m9.fragments",
       "m9.ring", "m9.pair", "m9.split", "m9.y", "m9.combine", "m9.launches"},
      {moe::random_layers()}, [] {
        moe::bugs::decode_models(true);
        moe::bugs::decode_models(false);
        moe::bugs::layer_models({});
      });
}
