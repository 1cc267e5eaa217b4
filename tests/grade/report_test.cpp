// Reports: hostile text, hidden cases, records.
#include <gtest/gtest.h>

#include "driver/grade/reports.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

using driver::CaseState;

TEST(ReportTest, HostileTextStaysText) {
  EXPECT_EQ(clean_text("a\x1b[2Jb\tc\r\n\xff\xc0\x80z\n"),
            "a [2Jb c \n\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(clean_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"),
            "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(clean_text("\xef\xbf\xbe"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd") << "not in XML";
}

ClassReport report_of(const std::string& student, CaseResult one) {
  ClassReport report;
  report.run_id = "0000000000000000";
  report.set = "full";
  report.device = "emulator";
  report.wall = "bubblewrap";
  report.scheme = parse_scheme("version = 1", "grading.toml");
  report.stages = {&kStages[0]};
  CaseResult passing = one;
  passing.state = CaseState::kPass;
  report.expected[kStages[0].stem] = {passing};
  StudentResult result;
  result.student = student;
  result.stages[kStages[0].stem].mark = Mark::kWrong;
  result.stages[kStages[0].stem].sentence = one.sentence;
  result.stages[kStages[0].stem].cases = {std::move(one)};
  report.students = {result};
  return report;
}

TEST(ReportTest, CellsAreNoFormulasAndPagesNoScripts) {
  CaseResult one = one_case("edge/x", CaseState::kWrong);
  one.sentence = "=HYPERLINK(\"x\"),<script>alert(1)</script>";
  const ClassReport report = report_of("=cmd,\"x\"", one);
  const std::string csv = results_csv(report);
  EXPECT_NE(csv.find(",\"'=cmd,\"\"x\"\"\","), std::string::npos) << csv;
  EXPECT_EQ(csv.find(",=HYPERLINK"), std::string::npos) << csv;
  for (const std::string& text : {student_page(report, report.students[0]), junit_xml(report)}) {
    EXPECT_EQ(text.find("<script>"), std::string::npos) << text;
  }
}

TEST(ReportTest, WhatDiesBeforeTheFirstCaseIsRunAgainAsAWhole) {
  CaseResult one = one_case(std::string(driver::kBeforeFirstCase), CaseState::kWrong);
  one.step = "before the first case";
  const ClassReport report = report_of("eve", one);
  const std::string page = student_page(report, report.students[0]);
  EXPECT_NE(page.find("again    drill m1 --full</pre>"), std::string::npos) << page;
  one.name = "edge/x";
  const ClassReport other = report_of("eve", one);
  EXPECT_NE(student_page(other, other.students[0]).find("drill m1 --full --case edge/x</pre>"),
            std::string::npos);
}

TEST(ReportTest, HiddenCasesGiveNothingAway) {
  CaseResult one = one_case("hidden/t37", CaseState::kWrong);
  one.sentence = "The pad id is wrong.";
  one.shape = "T=37";
  one.evidence = {"got 3, want 4"};
  one.fault = "line with a value";
  const ClassReport report = report_of("eve", one);
  for (const std::string& text :
       {student_page(report, report.students[0]), gradescope_json(report, report.students[0]),
        actions_json(report, report.students[0])}) {
    EXPECT_NE(text.find("The pad id is wrong."), std::string::npos);
    for (const char* word : {"want 4", "T=37", "hidden/t37", "line with a value"}) {
      EXPECT_EQ(text.find(word), std::string::npos) << word << "\n" << text;
    }
  }
}

TEST(ReportTest, ARecordSurvivesItsFile) {
  StageResult result;
  result.key = "k";
  result.mark = Mark::kHang;
  result.sentence = "bad \xff byte";
  result.flaky = true;
  result.attempts = 2;
  result.cases = {one_case("edge/x", CaseState::kNotRun)};
  result.cases[0].evidence = {"one", "two"};
  const StageResult read = stage_from_text(to_text(result));
  EXPECT_EQ(read.mark, Mark::kHang);
  EXPECT_EQ(read.cases[0].state, CaseState::kNotRun);
  EXPECT_EQ(read.cases[0].evidence.size(), 2u);
  EXPECT_TRUE(read.flaky);
  EXPECT_THROW(stage_from_text("{\"version\": 2}"), std::exception);
  EXPECT_THROW(stage_from_text("half a fi"), std::exception);
}

}  // namespace
}  // namespace moe::grade
