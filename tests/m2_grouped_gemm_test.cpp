// Tests of m2_grouped_gemm: cases in three data regimes, judged row by row against double
// precision.
#include <drills/m2_grouped_gemm.h>

#include <string>
#include <vector>

#include "judge/hidden.h"
#include "judge/suite.h"
#include "m2_grouped_gemm_bugs.h"
#include "m2_grouped_gemm_judge.h"

namespace moe {
namespace {

using namespace m2_cases;  // NOLINT(google-build-using-namespace): the other half of this file

const GemmMistakes& known_mistakes() {
  static const GemmMistakes known = {
      bugs::gemm_models(),
      {bugs::kPadRowsStored, bugs::kColumnsSpill, bugs::kUninitialised, bugs::kUnroutedRow},
      bugs::kNoEarlyExit,
      bugs::kPaddingRead,
      64};
  return known;
}

class M2GroupedGemm : public testing::TestWithParam<GemmCase> {};

TEST_P(M2GroupedGemm, MultipliesGatheredRows) {
  judge::run_case(stage_case_of(known_mistakes(), GetParam()));
}

std::vector<GemmCase> cases_of(const std::string& group) {
  std::vector<GemmCase> chosen;
  for (const GemmCase& c : kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M2GroupedGemm, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M2GroupedGemm, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random,
                         M2GroupedGemm,
                         testing::ValuesIn(cases_of("random")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(refused,
                         M2GroupedGemm,
                         testing::ValuesIn(cases_of("refused")),
                         name_of_case);

INSTANTIATE_TEST_SUITE_P(hidden,
                         M2GroupedGemm,
                         testing::ValuesIn(judge::hidden_cases(kCases,
                                                               [](GemmCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 20);
                                                                 c.num_experts +=
                                                                     random.integer(0, 5);
                                                                 c.n = 8 * random.integer(2, 20);
                                                                 c.depth =
                                                                     8 * random.integer(2, 25);
                                                               })),
                         name_of_case);

// ---- Offsets past 2^31.

constexpr FarCase kFarCases[] = {
    // The last expert's weights start at element 2^31: 4 GiB of address space, 128 KiB of data.
    {"expert", false, 1, 1, 32769, 8, 8192, false},
    // out and a (one row per slot) pass 2^31 elements at the last flat id.
    {"out_row", false, 32769, 8, 8, 8200, 16, true},
    {"a_row", true, 32769, 8, 8, 16, 8200, true},
};

class M2FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M2FarOffsets, NeedInt64) {
  judge::run_case(far_case_of(bugs::kOffset32, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(far, M2FarOffsets, testing::ValuesIn(kFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

const judge::FuzzTarget& random_cases() {
  static const judge::FuzzTarget kTarget =
      random_gemms(known_mistakes(), {60, 40, 24, 40, 16, 3, 48});
  return kTarget;
}

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m2_grouped_gemm",
      {"m2.early_exit", "m2.gather", "m2.load", "m2.multiply", "m2.mainloop", "m2.store"},
      {moe::random_cases()}, [] { moe::bugs::gemm_models(); });
}
