// Tests of m6_wgmma: m2's product, judged as m2 is, on shapes that go around the ring of tiles.
#include <drills/m6_wgmma.h>

#include <string>
#include <vector>

#include "judge/fuzz.h"
#include "judge/suite.h"
#include "m2_grouped_gemm_judge.h"
#include "m6_wgmma_bugs.h"
#include "m6_wgmma_cases.h"

namespace moe {
namespace {

using namespace m2_cases;  // NOLINT(google-build-using-namespace): cases are made as m2's are

// m2's mistakes with rows, called as m6's.
struct Mistakes {
  judge::Mistake pad_rows_stored = bugs::in_m6(bugs::kPadRowsStored);
  judge::Mistake columns_spill = bugs::in_m6(bugs::kColumnsSpill);
  judge::Mistake unrouted_row = bugs::in_m6(bugs::kUnroutedRow);
  judge::Mistake no_early_exit = bugs::in_m6(bugs::kNoEarlyExit);
  judge::Mistake offset32 = bugs::in_m6(bugs::kOffset32);
  judge::Mistake padding_read = {bugs::kPaddingRead.code, "m6.gather", "gather",
                                 bugs::kPaddingRead.sentence};
  GemmMistakes all = {bugs::wgmma_models(),
                      {pad_rows_stored, columns_spill, bugs::kWgmmaUninitialised, unrouted_row},
                      no_early_exit,
                      padding_read,
                      128};
};

const Mistakes& known_mistakes() {
  static const Mistakes known;
  return known;
}

class M6Wgmma : public testing::TestWithParam<GemmCase> {};

TEST_P(M6Wgmma, MultipliesGatheredRows) {
  judge::run_case(stage_case_of(known_mistakes().all, GetParam()));
}

std::vector<GemmCase> cases_of(const std::string& group) {
  std::vector<GemmCase> chosen;
  for (const GemmCase& c : kWgmmaCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M6Wgmma, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M6Wgmma, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M6Wgmma, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M6Wgmma, testing::ValuesIn(cases_of("refused")), name_of_case);

// ---- Offsets past 2^31.

constexpr FarCase kWgmmaFarCases[] = {
    // The last expert's weights start at element 2^31: 4 GiB of address space, 128 KiB of data.
    {"expert", false, 1, 1, 32769, 8, 8192, false, 64},
    // out and a (one row per slot) pass 2^31 elements at the last flat id.
    {"out_row", false, 32769, 8, 8, 8200, 16, true, 64},
    {"a_row", true, 32769, 8, 8, 16, 8200, true, 64},
};

class M6FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M6FarOffsets, NeedInt64) {
  judge::run_case(far_case_of(known_mistakes().offset32, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(far, M6FarOffsets, testing::ValuesIn(kWgmmaFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

// ---- Random cases

judge::CaseResult run_random(const std::string& name, const std::vector<int>& g) {
  GemmCase c = {"fuzz",
                judge::kept(name.substr(5)),
                g[0] == 0 ? kTokens : kSlots,
                g[1],
                g[2],
                std::max(g[2], g[3]),
                8 * g[4],
                8 * g[5],
                64 << g[6],
                kRandomLoads[g[7]],
                static_cast<Data>(g[8])};
  c.refused = g[9] > 0;
  if (g[9] == 1) c.n += 4;
  if (g[9] == 2) c.depth += 4;
  if (g[9] == 3) c.block_m = 32;
  if (g[9] == 4) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  return judge::judge_case(stage_case_of(known_mistakes().all, c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"gemm",
                                                        {{"rows", 0, 1},
                                                         {"T", 0, 90},
                                                         {"K", 1, 8},
                                                         {"E", 1, 20},
                                                         {"N/8", 1, 36},
                                                         {"D/8", 1, 40},
                                                         {"block_m/64 - 1", 0, 1},
                                                         {"load", 0, kNumRandomLoads - 1},
                                                         {"data", 0, 3},
                                                         {"broken", 0, 4, true}},
                                                        run_random}};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(argc, argv, "m6_wgmma",
                                {"m6.descriptor", "m6.barriers", "m6.load_w", "m6.gather",
                                 "m6.multiply", "m6.mainloop", "m6.store"},
                                moe::kRandomTargets, [] { moe::known_mistakes(); });
}
