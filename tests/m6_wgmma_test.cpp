// Tests of m6_wgmma: m2's product, judged as m2 is, on shapes that go around the ring of tiles.
#include <drills/m6_wgmma.h>

#include <string>
#include <vector>

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

const judge::FuzzTarget& random_cases() {
  static const judge::FuzzTarget kTarget =
      random_gemms(known_mistakes().all, {90, 20, 36, 40, 64, 1, 32});
  return kTarget;
}

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(argc, argv, "m6_wgmma",
                                {"m6.descriptor", "m6.barriers", "m6.load_w", "m6.gather",
                                 "m6.multiply", "m6.mainloop", "m6.store"},
                                {moe::random_cases()}, [] { moe::known_mistakes(); });
}
