// Tests of m8_persistent: the cases that every layer has, and those of its scheduler and ring:
// numbers of rows around whole and half tiles, boxes and units, numbers of tiles around multiples
// of the blocks, one hot expert, empty experts, the same call twice.
#include <drills/m8_persistent.h>

#include <cmath>
#include <string>

#include "judge/bf16.h"
#include "judge/suite.h"
#include "layer_cases.h"
#include "m8_persistent_bugs.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Outputs;
using judge::Verdict;
using oracle::LayerProblem;

constexpr LayerData kNormal = LayerData::kNormal;
constexpr LayerData kExact = LayerData::kExact;
constexpr LayerData kHot = LayerData::kHotExpert;

// clang-format off: one case a line
constexpr LayerCase kCases[] = {
    //                       T   E  K   H   I
    // rows of one expert: units of 16, half tiles of 64, whole ones of 128, both GEMMs' tiles
    {"rows", "rows_15", 15, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_16", 16, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_17", 17, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_48", 48, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_49", 49, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_63", 63, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_64", 64, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_65", 65, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_80", 80, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_112", 112, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_113", 113, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_127", 127, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_128", 128, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_129", 129, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_177", 177, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_193", 193, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_240", 240, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_256", 256, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_257", 257, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_300", 300, 1, 1, 64, 32, false, kExact},
    // tiles: 1 to 9 of each GEMM for the emulator's four blocks, and columns that fill no tile
    {"tiles", "tiles_3", 9, 1, 1, 384, 384, false, kNormal},
    {"tiles", "tiles_4", 9, 1, 1, 512, 512, false, kExact},
    {"tiles", "tiles_5", 9, 1, 1, 520, 520, false, kExact},
    {"tiles", "tiles_8", 20, 8, 8, 72, 136, true, kExact},
    {"tiles", "tiles_9_and_18", 20, 9, 9, 136, 72, true, kNormal},
    {"tiles", "tiles_13", 26, 13, 4, 64, 64, true, kNormal},
    // one hot expert: whole tiles and half ones, GEMM2 cuts it into three tiles of 48
    {"tiles", "hot_expert", 130, 8, 2, 72, 72, true, kHot},
    {"tiles", "hot_expert_of_many", 100, 40, 2, 64, 40, true, kHot},
    {"tiles", "empty_experts", 6, 100, 2, 64, 64, true, kNormal},
    {"tiles", "e512", 7, 512, 8, 8, 8, true, kNormal},
    {"tiles", "e1024", 3, 1024, 2, 8, 8, true, kNormal},
    {"tiles", "k8_of_8", 33, 8, 8, 64, 64, false, kNormal},
    // turns: the ring has four stages, or six to eight; reports are due in turn 8
    {"ring", "turns_1", 80, 2, 1, 64, 64, false, kExact},
    {"ring", "turns_2_and_3", 80, 2, 1, 128, 192, false, kNormal},
    {"ring", "turns_4_and_5", 80, 2, 1, 256, 320, false, kNormal},
    {"ring", "turns_9_and_8", 20, 3, 2, 576, 512, true, kNormal},
    {"ring", "turns_11_and_10", 150, 2, 1, 704, 640, false, kNormal},
    {"ring", "turns_7_and_6", 90, 2, 2, 448, 384, true, kNormal},
    // the same call twice, into two outputs
    {"random", "twice_hot", 70, 6, 2, 72, 136, true, kHot, false, 2},
    {"random", "twice_many_blocks", 170, 12, 3, 40, 72, true, kNormal, false, 2},
    {"random", "many_tokens", 2100, 4, 1, 8, 8, false, kNormal},
};
// clang-format on

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
  for (const LayerCase& c : kCases) {
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
      {"m8.reset", "m8.totals", "m8.cut", "m8.place", "m8.tile_of", "m8.await_rows", "m8.next_tile",
       "m8.store", "m8.report", "m8.half_tile", "m8.multiply", "m8.combine", "m8.launches"},
      {moe::random_layers(moe::stage_case_of)});
}
