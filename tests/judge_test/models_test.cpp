// Every bug model against the suite's own cases: some case rejects it, and the run as a whole names
// it and nothing else. Where one case can't tell two mistakes apart both are named, and another
// case separates them.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "../judge/models.h"
#include "../judge/suite.h"
#include "../m2_grouped_gemm_bugs.h"
#include "../m2_grouped_gemm_cases.h"
#include "../m3_weighted_epilogue_bugs.h"
#include "../m3_weighted_epilogue_cases.h"
#include "../m4_group_m_bugs.h"
#include "../m4_group_m_cases.h"
#include "../m5_block_fp8_bugs.h"
#include "../m5_block_fp8_cases.h"
#include "../m5_block_fp8_judge.h"

namespace moe::judge {
namespace {

// A case of the suite with everything that does not depend on the mistake.
template <class Problem>
struct KnownCase {
  std::string name;
  Problem problem;
  Matrix want;
  std::vector<uint8_t> judged;
  bool exact;
};

template <class Problem, class T>
struct Table {
  const std::vector<MatrixModel<Problem>>& models;
  std::vector<KnownCase<Problem>> cases;
  T poison;
  Gates gates;
  double slack;
};

template <class T>
std::vector<T> stored_output(const Matrix& said, const Matrix& want, T poison) {
  std::vector<T> out;
  for (size_t i = 0; i < said.values.size(); ++i) {
    const double value = said.values[i] == kAnything ? want.values[i] : said.values[i];
    out.push_back(value == kUntouched ? poison : stored(value, poison));
  }
  return out;
}

template <class Problem, class T>
Verdict judged(const Table<Problem, T>& table,
               const KnownCase<Problem>& one,
               const std::vector<T>& out) {
  const auto difference = compare(out, one.want, one.judged, table.poison, one.exact, table.gates);
  if (difference.right) return {};
  const ValueRules<T> rules = {table.poison, one.exact, table.gates, table.slack};
  const auto mistakes =
      explaining(table.models, one.problem, out, one.want, difference, one.judged, rules);
  return mistakes.empty() ? wrong("The output is wrong.") : wrong(mistakes, {});
}

template <class Problem, class T>
void add_failures(const Table<Problem, T>& table,
                  const MatrixModel<Problem>& model,
                  Diagnosis& diagnosis) {
  for (const KnownCase<Problem>& one : table.cases) {
    const auto out = stored_output(model.output(one.problem), one.want, table.poison);
    const Verdict verdict = judged(table, one, out);
    if (!verdict.pass()) diagnosis.add(one.name, verdict, false);
  }
}

// What a run says where the output is that of `model`. A stage may have tables for two types.
template <class Problem, class... Tables>
Diagnosis diagnose(const MatrixModel<Problem>& model, const Tables&... tables) {
  Diagnosis& diagnosis = Suite::get().diagnosis();  // the one that worth_trying asks
  diagnosis = {};
  (add_failures(tables, model, diagnosis), ...);
  return diagnosis;
}

template <class Table, class... Tables>
void expect_every_model_named(const Table& table, const Tables&... others) {
  ASSERT_FALSE(table.cases.empty());
  for (const auto& model : table.models) {
    const auto best = diagnose(model, table, others...).best(true);
    ASSERT_FALSE(best.empty()) << model.mistake.code << ": no case shows it";
    EXPECT_EQ(best.front().verdict.code, model.mistake.code)
        << "in " << best.front().cases.size() << " cases, first " << best.front().cases.front();
    for (size_t i = 1; i < best.size(); ++i) {
      ADD_FAILURE() << best.front().verdict.code << " can't be told from " << best[i].verdict.code
                    << " by any case";
    }
  }
}

bool is_exact(const oracle::Fp8GemmProblem& p) {
  return p.exact;
}
bool is_exact(const oracle::GemmProblem& p) {
  return p.exact;
}
bool is_exact(const oracle::SiluProblem& p) {
  return p.exact;
}
bool is_exact(const oracle::CombineProblem& p) {
  return p.exact;
}
bool is_exact(const oracle::WeightedProblem& p) {
  return p.gemm.exact;
}
bool is_exact(const oracle::EpilogueProblem& p) {
  return p.gemm.exact;
}

template <class Problem, class Case, size_t N, class Make, class Want, class Judged>
std::vector<KnownCase<Problem>> known_cases(
    const Case (&cases)[N], Make make, Want want, Judged judged, size_t largest = 20'000) {
  std::vector<KnownCase<Problem>> known;
  for (const Case& one : cases) {
    if (one.refused) continue;
    Problem p = make(one, mix(1, one.name));
    Matrix reference = want(p);
    if (reference.values.empty() || reference.values.size() > largest) continue;
    auto rows = judged(p);
    const bool exact = is_exact(p);
    known.push_back({std::string(one.group) + "/" + one.name, std::move(p), std::move(reference),
                     std::move(rows), exact});
  }
  return known;
}

std::vector<uint8_t> routed_ids(const oracle::GemmProblem& p) {
  std::vector<uint8_t> routed;
  for (int id = 0; id < p.num_ids(); ++id) routed.push_back(p.routed(id) ? 1 : 0);
  return routed;
}

constexpr Bf16 kPoisonBf16 = 0x7fa5;

Table<oracle::GemmProblem, Bf16> gemm_table() {
  using oracle::GemmProblem;
  return {bugs::gemm_models(),
          known_cases<GemmProblem>(
              m2_cases::kCases, m2_cases::make_problem,
              [](const GemmProblem& p) { return oracle::grouped_gemm(p); }, routed_ids),
          kPoisonBf16, Gates{}, kModelSlack};
}

TEST(Models, OfTheGroupedGemm) {
  expect_every_model_named(gemm_table());
}

TEST(Models, OfSilu) {
  using oracle::SiluProblem;
  auto cases = known_cases<SiluProblem>(
      m3_cases::kSiluCases, m3_cases::make_silu, oracle::silu_and_mul,
      [](const SiluProblem& p) { return std::vector<uint8_t>(static_cast<size_t>(p.num_ids), 1); });
  // The table of special values is judged value by value.
  std::erase_if(cases, [](const auto& one) { return one.name == "edge/silu_table"; });
  expect_every_model_named(
      Table<SiluProblem, Bf16>{bugs::silu_models(), cases, kPoisonBf16, Gates{}, kModelSlack});
}

TEST(Models, OfTheWeightedGemm) {
  using oracle::WeightedProblem;
  expect_every_model_named(Table<WeightedProblem, Bf16>{
      bugs::weighted_models(),
      known_cases<WeightedProblem>(m3_cases::kWeightedCases, m3_cases::make_weighted,
                                   oracle::grouped_gemm_weighted,
                                   [](const WeightedProblem& p) { return routed_ids(p.gemm); }),
      kPoisonBf16, Gates{}, kModelSlack});
}

TEST(Models, OfCombine) {
  using oracle::CombineProblem;
  expect_every_model_named(Table<CombineProblem, Bf16>{
      bugs::combine_models(),
      known_cases<CombineProblem>(m3_cases::kCombineCases, m3_cases::make_combine, oracle::combine,
                                  [](const CombineProblem& p) {
                                    return std::vector<uint8_t>(static_cast<size_t>(p.num_tokens),
                                                                1);
                                  }),
      kPoisonBf16, Gates{}, kModelSlack});
}

TEST(Models, OfTheEpilogue) {
  using oracle::EpilogueProblem;
  expect_every_model_named(Table<EpilogueProblem, Bf16>{
      bugs::epilogue_models(),
      known_cases<EpilogueProblem>(
          m4_cases::kGemmCases, m4_cases::make_problem,
          [](const EpilogueProblem& p) { return oracle::grouped_gemm(p); },
          [](const EpilogueProblem& p) { return routed_ids(p.gemm); }, 8000),
      kPoisonBf16, Gates{}, kModelSlack});
}

// Its outputs have two types. A model costs as much as the oracle, so large cases are left out
// where no mistake needs them.
TEST(Models, OfBlockFp8) {
  using oracle::Fp8GemmProblem;
  constexpr size_t kLargest = 2500;
  const std::set<std::string> needed = {"edge/seam", "edge/n_tail", "edge/n_tail_long"};
  auto fp32 = known_cases<Fp8GemmProblem>(m5_cases::kCases, m5_cases::make_problem,
                                          oracle::grouped_gemm_fp8, judged_rows);
  std::erase_if(fp32, [&](const auto& one) {
    return one.want.values.size() > kLargest && needed.count(one.name) == 0;
  });
  auto bf16 = fp32;
  std::erase_if(fp32, [](const auto& one) { return !one.problem.out_fp32; });
  std::erase_if(bf16, [](const auto& one) { return one.problem.out_fp32; });
  expect_every_model_named(
      Table<Fp8GemmProblem, Fp32>{bugs::fp8_gemm_models(), fp32, bugs::kPoisonBits, kFp32Gates,
                                  kFp32ModelSlack},
      Table<Fp8GemmProblem, Bf16>{bugs::fp8_gemm_models(), bf16, kPoisonBf16, Gates{},
                                  kModelSlack});
}

// ---- Two mistakes that one case can't tell apart

// On this case every block's expert is the first block's and expert 0 too.
TEST(Ambiguous, BothMistakesAreNamed) {
  const auto table = gemm_table();
  const auto model = std::find_if(table.models.begin(), table.models.end(), [](const auto& m) {
    return std::string_view(m.mistake.code) == "M2-EXPERT-ZERO";
  });
  ASSERT_NE(model, table.models.end());
  Suite::get().diagnosis() = {};
  const auto tiny = std::find_if(table.cases.begin(), table.cases.end(),
                                 [](const auto& one) { return one.name == "tiny/t4k2"; });
  ASSERT_NE(tiny, table.cases.end());
  const auto out = stored_output(model->output(tiny->problem), tiny->want, kPoisonBf16);
  const Verdict verdict = judged(table, *tiny, out);
  std::set<std::string> codes = {verdict.code};
  for (const Mistake& other : verdict.also) codes.insert(other.code);
  EXPECT_EQ(codes, (std::set<std::string>{"M2-EXPERT0", "M2-EXPERT-ZERO"}));

  // Alone, the case leaves both open: `drill m2 --case tiny/t4k2` says so.
  Diagnosis alone;
  alone.add(tiny->name, verdict, false);
  ASSERT_EQ(alone.best(false).size(), 2u);

  // The whole suite has the cases that separate them, for either mistake.
  for (const char* code : {"M2-EXPERT0", "M2-EXPERT-ZERO"}) {
    const auto mistaken =
        std::find_if(table.models.begin(), table.models.end(),
                     [&](const auto& m) { return std::string_view(m.mistake.code) == code; });
    const auto best = diagnose(*mistaken, table).best(true);
    ASSERT_EQ(best.size(), 1u);
    EXPECT_EQ(best.front().verdict.code, code);
  }
}

const Mistake kFirst = {"X-FIRST", "x.region", "note", "First."};
const Mistake kSecond = {"X-SECOND", "x.region", "note", "Second."};

TEST(Diagnosis, SaysNothingOfNoFailure) {
  EXPECT_TRUE(Diagnosis().best(true).empty());
}

TEST(Diagnosis, LeavesOpenWhatNoCaseSettles) {
  Diagnosis diagnosis;
  diagnosis.add("a", wrong({kFirst, kSecond}, {}), false);
  diagnosis.add("b", wrong({kSecond, kFirst}, {}), false);
  ASSERT_EQ(diagnosis.best(true).size(), 2u);
  EXPECT_EQ(diagnosis.best(true)[0].verdict.code, "X-FIRST");
  EXPECT_EQ(diagnosis.best(true)[1].verdict.code, "X-SECOND");
}

TEST(Diagnosis, IsSettledByACaseThatOneMistakeExplains) {
  Diagnosis diagnosis;
  diagnosis.add("a", wrong({kFirst, kSecond}, {}), false);
  diagnosis.add("b", wrong(std::vector{kSecond}, {}), false);
  ASSERT_EQ(diagnosis.best(true).size(), 1u);
  EXPECT_EQ(diagnosis.best(true)[0].verdict.code, "X-SECOND");
}

// The layer leaves open whether it or its function wrote nothing; the function's own cases passed.
TEST(Diagnosis, TrustsFunctionsThatPassAlone) {
  Diagnosis diagnosis;
  diagnosis.add("layer", wrong({kFirst, kSecond}, {}), true);
  EXPECT_EQ(diagnosis.best(true).size(), 1u);
  EXPECT_EQ(diagnosis.best(false).size(), 2u);
}

// Two mistakes in one file are no "either or".
TEST(Diagnosis, KeepsMistakesOfOtherCasesApart) {
  Diagnosis diagnosis;
  diagnosis.add("a", wrong(kFirst, {}), false);
  diagnosis.add("b", wrong(kSecond, {}), false);
  ASSERT_EQ(diagnosis.best(true).size(), 1u);
  EXPECT_EQ(diagnosis.best(true)[0].verdict.code, "X-FIRST");
}

TEST(Diagnosis, PrefersNoNameToOneThatExplainsLittle) {
  Diagnosis diagnosis;
  diagnosis.add("a", wrong(kFirst, {}), false);
  diagnosis.add("b", wrong("The output is wrong."), false);
  diagnosis.add("c", wrong("The output is wrong."), false);
  EXPECT_EQ(diagnosis.best(true)[0].verdict.code, "");
}

TEST(Diagnosis, TakesTheWordOfTheFunctionNotOfTheWhole) {
  Diagnosis diagnosis;
  diagnosis.add("silu", wrong(kFirst, {}), false);
  diagnosis.add("layer", wrong("The output is wrong."), true);
  diagnosis.add("layer2", wrong("The output is wrong."), true);
  EXPECT_EQ(diagnosis.best(true)[0].verdict.code, "X-FIRST");
}

}  // namespace
}  // namespace moe::judge
