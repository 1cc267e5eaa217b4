// From verdicts to points.
#include <gtest/gtest.h>

#include <cmath>

#include "driver/grade/examine.h"
#include "driver/grade/score.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

using driver::CaseState;

const std::vector<CaseResult>& four_cases() {
  static const std::vector<CaseResult> kCases{
      one_case("tiny/a", CaseState::kPass), one_case("edge/b", CaseState::kPass),
      one_case("edge/c", CaseState::kPass), one_case("far/d", CaseState::kSkip)};
  return kCases;
}

Scheme simple_scheme(const std::string& more = "") {
  return parse_scheme("version = 1\n" + more + "\n[groups]\ntiny = 1\nedge = 3\n", "grading.toml");
}

TEST(ScoreTest, GroupsShareThePointsByTheirWeights) {
  StageResult result;
  result.mark = Mark::kWrong;
  result.cases = four_cases();
  result.cases[2].state = CaseState::kWrong;
  const StageScore score = score_stage(result, four_cases(), simple_scheme(), "m1", false);
  EXPECT_DOUBLE_EQ(score.earned, 20 * (0.25 + 0.75 / 2));
  EXPECT_DOUBLE_EQ(score.maximum, 20);
  EXPECT_EQ(score.groups.size(), 2u) << "what our solution skips counts for nobody";
  const Scheme whole = simple_scheme("count = \"groups\"");
  EXPECT_DOUBLE_EQ(score_stage(result, four_cases(), whole, "m1", false).earned, 5);
}

TEST(ScoreTest, AClosedGateGivesNothing) {
  StageResult result;
  result.mark = Mark::kWrong;
  result.cases = four_cases();
  result.cases[0].state = CaseState::kWrong;
  const StageScore score = score_stage(result, four_cases(), simple_scheme(), "m1", false);
  EXPECT_EQ(score.earned, 0);
  EXPECT_EQ(score.reason, "no points: not every case of group tiny passes");
  EXPECT_DOUBLE_EQ(
      score_stage(result, four_cases(), simple_scheme("gate = []"), "m1", false).earned, 15);
}

TEST(ScoreTest, MissingIsZeroAndAFaultIsNoScore) {
  StageResult missing;
  missing.mark = Mark::kMissing;
  EXPECT_TRUE(score_stage(missing, four_cases(), simple_scheme(), "m1", false).scored);
  EXPECT_EQ(score_stage(missing, four_cases(), simple_scheme(), "m1", false).earned, 0);
  StageResult fault;
  fault.mark = Mark::kFault;
  fault.cases = four_cases();
  EXPECT_FALSE(score_stage(fault, four_cases(), simple_scheme(), "m1", false).scored);
}

TEST(ScoreTest, ABrokenRuleOrFullMemoryVoidsTheStage) {
  for (const Mark mark : {Mark::kRule, Mark::kMemory}) {
    StageResult result;
    result.mark = mark;
    result.cases = four_cases();
    EXPECT_EQ(score_stage(result, four_cases(), simple_scheme(), "m1", false).earned, 0);
  }
}

TEST(ScoreTest, TheCurveOfPerformance) {
  const Scheme scheme = parse_scheme("version = 1", "grading.toml");
  EXPECT_EQ(performance_curve(0.5, scheme), 1);
  EXPECT_EQ(performance_curve(1.2, scheme), 1);
  EXPECT_NEAR(performance_curve(5.6, scheme), 0.5, 1e-12);
  EXPECT_EQ(performance_curve(10, scheme), 0);
  EXPECT_EQ(performance_curve(0, scheme), 0) << "no time at all was measured";
  EXPECT_EQ(performance_curve(std::nan(""), scheme), 0);
}

TEST(ScoreTest, SpeedCountsOnlyWhereEveryCasePasses) {
  Scheme scheme = simple_scheme();
  scheme.performance_share = 0.5;
  StageResult result;
  result.mark = Mark::kPass;
  result.cases = four_cases();
  result.timing = {200, 100, ""};
  const double share = (10 - 2.0) / (10 - 1.2);
  EXPECT_NEAR(score_stage(result, four_cases(), scheme, "m1", true).earned, 10 + 10 * share, 0.006);
  EXPECT_EQ(score_stage(result, four_cases(), scheme, "m1", false).earned, 20) << "nothing timed";
  result.mark = Mark::kWrong;
  result.cases[1].state = CaseState::kWrong;
  EXPECT_LT(score_stage(result, four_cases(), scheme, "m1", true).earned, 10);
}

TEST(ScoreTest, ACostOverTheGateLosesItsShareAlone) {
  Scheme scheme = simple_scheme();
  scheme.cost_share = 0.25;
  StageResult result;
  result.mark = Mark::kPass;
  result.cases = four_cases();
  result.cost = {true, 9.9, 0, 1.1, ""};
  result.reference_cost = {true, 9.5, 0, 1.0, ""};
  EXPECT_EQ(score_stage(result, four_cases(), scheme, "m1", false).earned, 20);
  result.cost.bank_conflicts = 500;
  const StageScore lost = score_stage(result, four_cases(), scheme, "m1", false);
  EXPECT_EQ(lost.earned, 15);
  EXPECT_EQ(lost.reason, "no points for cost: 500 bank conflicts where 16 are allowed");
  scheme.max_bank_conflicts = 500;
  EXPECT_EQ(score_stage(result, four_cases(), scheme, "m1", false).earned, 20);
  scheme.max_sectors_per_request = 9.8;
  EXPECT_EQ(score_stage(result, four_cases(), scheme, "m1", false).earned, 15);
}

TEST(ScoreTest, ACostCountsOnlyWhereEveryCasePasses) {
  Scheme scheme = simple_scheme();
  scheme.cost_share = 0.25;
  StageResult result;
  result.mark = Mark::kWrong;
  result.cases = four_cases();
  const StageScore score = score_stage(result, four_cases(), scheme, "m1", false);
  EXPECT_EQ(score.earned, 15);
  EXPECT_EQ(score.reason, "no points for cost: not every case passes");
}

TEST(ScoreTest, ATimeCountsOnlyBesideARightReference) {
  const std::string ours = R"({"side":"solution","median_us":100,"verdict":"right"})";
  const std::string theirs = R"({"side":"mine","median_us":150,"verdict":"right"})";
  const std::string wrong = R"({"side":"mine","median_us":1,"verdict":"WRONG: zeros"})";
  EXPECT_EQ(timing_of(ours + "\n" + theirs + "\n").mine_us, 150);
  EXPECT_EQ(timing_of(ours + "\n" + theirs + "\n").problem, "");
  EXPECT_EQ(timing_of(ours + "\n" + wrong + "\n").problem, "a timed output was wrong");
  EXPECT_EQ(timing_of(ours + "\n").problem, "it could not be timed");
  EXPECT_EQ(timing_of("garbage\n").problem, "it could not be timed");
}

}  // namespace
}  // namespace moe::grade
