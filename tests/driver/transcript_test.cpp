#include "driver/transcript.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

Scene scene(const std::string& side = "mine") {
  Scene scene;
  scene.stage = {"m2", "m2_grouped_gemm", "grouped GEMM with gather", ""};
  scene.side = side;
  scene.again = "drill m2";
  scene.source = "// first line\n  // BEGIN m2.gather\n";
  scene.blanks = {
      {"m2.gather", false, 2, "Pick the row of A. Two gathers."},
      {"m2.store_tile", true, 9, "Store."},
      {"m2.mainloop", false, 0, "Loop over the depth in tiles of BLOCK_K and accumulate in fp32"}};
  return scene;
}

CaseRecord make_case(const std::string& name, CaseState state) {
  CaseRecord one;
  one.name = name;
  one.state = state;
  one.shape = "T=5 E=3 K=2 N=32 D=16 block_m=16";
  one.seed = 17;
  return one;
}

CaseRecord wrong_case(const std::string& name, const std::string& code) {
  CaseRecord one = make_case(name, CaseState::kWrong);
  one.sentence = "GEMM1 must read row flat_id / top_k; you used flat_id itself.";
  one.code = code;
  return one;
}

std::string verdict(const Report& report, const std::string& side = "mine") {
  return verdict_text(report, scene(side), Paint(false));
}

TEST(Transcript, HeaderFitsOrBreaks) {
  EXPECT_EQ(header_text(scene(), "emulator (no GPU found)", Paint(false)),
            "m2  grouped GEMM with gather   mine/m2_grouped_gemm.cu   emulator (no GPU found)\n");
  EXPECT_EQ(header_text(scene("solution"), "emulator (no GPU found)", Paint(false)),
            "SOLUTION (not your file)\n"
            "m2  grouped GEMM with gather\n"
            "    solutions/m2_grouped_gemm.cu   emulator (no GPU found)\n");
}

TEST(Transcript, TestLineCountsByGroup) {
  Report report;
  report.seed = 8841;
  report.cases = {make_case("tiny/a", CaseState::kPass), make_case("edge/a", CaseState::kPass),
                  make_case("edge/b", CaseState::kWrong), make_case("edge/c", CaseState::kSkip)};
  EXPECT_EQ(test_text(report, 1.44), "test   tiny 1/1  edge 1/2  skipped 1   seed 8841   1.4 s\n");
}

TEST(Transcript, WrongShowsOneCaseInFull) {
  Report report;
  report.cases = {make_case("tiny/a", CaseState::kPass), wrong_case("edge/a", "M2-FLATROW"),
                  wrong_case("edge/b", "M2-FLATROW"),    wrong_case("edge/c", "M2-OTHER"),
                  make_case("edge/d", CaseState::kTodo), make_case("edge/e", CaseState::kNotRun)};
  CaseRecord& first = report.cases[1];
  first.step = "reversed thread order";
  first.region = "m2.gather";
  first.note = "gather";
  first.evidence = {"160 of 320 values wrong", "every odd flat_id is wrong"};
  EXPECT_EQ(verdict(report),
            "WRONG  edge/a   T=5 E=3 K=2 N=32 D=16 block_m=16   seed 17\n"
            "\n"
            "  GEMM1 must read row flat_id / top_k; you used flat_id itself.\n"
            "\n"
            "  found   160 of 320 values wrong\n"
            "          every odd flat_id is wrong\n"
            "  when    reversed thread order\n"
            "  code    mine/m2_grouped_gemm.cu:2 region m2.gather\n"
            "  notes   drill notes m2 gather (M2-FLATROW)\n"
            "  help    drill hint m2\n"
            "  look    drill m2 --map, --print ROW,COL\n"
            "  again   drill m2 --case edge/a --seed 17\n"
            "\n"
            "  1 other case fails the same way: edge/b\n"
            "  1 other case fails in another way: edge/c\n"
            "  1 case reached a part that is not written yet\n"
            "  1 case not run after that\n");
}

TEST(Transcript, WrongWithoutADiagnosisShowsWhatItHas) {
  Report report;
  report.cases = {make_case("edge/a", CaseState::kWrong)};
  report.cases[0].evidence = {"3 of 8 values wrong"};
  report.cases[0].seed.reset();
  EXPECT_EQ(verdict(report),
            "WRONG  edge/a   T=5 E=3 K=2 N=32 D=16 block_m=16\n"
            "\n"
            "  found   3 of 8 values wrong\n"
            "  help    drill hint m2\n"
            "  look    drill m2 --map, --print ROW,COL\n"
            "  again   drill m2 --case edge/a\n");
}

TEST(Transcript, LinesStayWithinEightyColumns) {
  Report report;
  for (int i = 0; i < 30; ++i) {
    report.cases.push_back(wrong_case("adversarial/a_long_name_" + std::to_string(i), "M2-A"));
  }
  report.cases[0].shape += " and one more dimension=123456 and=another";
  report.cases[0].evidence = {std::string(40, 'a') + " " + std::string(40, 'b')};
  report.cases[0].sentence += " " + report.cases[0].sentence;
  for (const std::string& line : split_lines(verdict(report))) {
    EXPECT_LE(line.size(), kColumns) << line;
  }
}

TEST(Transcript, TodoListsTheBlanks) {
  Report report;
  report.cases = {make_case("tiny/a", CaseState::kPass), make_case("tiny/b", CaseState::kTodo)};
  EXPECT_EQ(verdict(report),
            "TODO   m2   2 of 3 regions to write\n"
            "  [ ] m2.gather      mine/m2_grouped_gemm.cu:2   Pick the row of A\n"
            "  [x] m2.store_tile  mine/m2_grouped_gemm.cu:9\n"
            "  [ ] m2.mainloop    mine/m2_grouped_gemm.cu\n"
            "        Loop over the depth in tiles of BLOCK_K and accumulate in fp32\n"
            "\n"
            "  cases   1 case reaches a blank, 1 reaches none and passes\n"
            "  notes   drill notes m2, drill hint m2\n");
}

TEST(Transcript, TodoShowsTheFirstSentence) {
  const auto shown = [](const std::string& instruction) {
    Scene one = scene();
    one.blanks = {{"m2.a", false, 1, instruction}};
    Report report;
    report.cases = {make_case("tiny/b", CaseState::kTodo)};
    return verdict_text(report, one, Paint(false));
  };
  EXPECT_NE(shown("Copies k0 .. k0 + 7. The rest").find("   Copies k0 .. k0 + 7\n"),
            std::string::npos);
  EXPECT_NE(shown("Find e.g. this (as above). then more").find("   Find e.g. this (as above)\n"),
            std::string::npos);
  EXPECT_NE(shown("Only one.").find("   Only one\n"), std::string::npos);
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  EXPECT_NE(shown(words).find(" ...\n"), std::string::npos);
  EXPECT_LT(shown(words).size(), 450u);
}

TEST(Transcript, TestLineBreaksBetweenGroups) {
  Report report;
  report.seed = 1;
  for (const char* group : {"tiny", "edge", "random", "refused", "far", "adversarial", "golden"}) {
    report.cases.push_back(make_case(std::string(group) + "/a", CaseState::kPass));
  }
  EXPECT_EQ(test_text(report, 0.2),
            "test   tiny 1/1  edge 1/1  random 1/1  refused 1/1  far 1/1  adversarial 1/1\n"
            "       golden 1/1   seed 1   0.2 s\n");
}

TEST(Transcript, CrashShowsTheFault) {
  Report report;
  report.cases = {make_case("edge/a", CaseState::kCrash), make_case("edge/b", CaseState::kCrash)};
  for (CaseRecord& one : report.cases) {
    one.fault = "out of bounds: read of 2 bytes\n  in block (1,0,0)\n  at mine/m2.cu:61\n";
  }
  EXPECT_EQ(verdict(report),
            "CRASH  edge/a   T=5 E=3 K=2 N=32 D=16 block_m=16   seed 17\n"
            "\n"
            "  out of bounds: read of 2 bytes\n"
            "    in block (1,0,0)\n"
            "    at mine/m2.cu:61\n"
            "\n"
            "  help    drill hint m2\n"
            "  again   drill m2 --case edge/a --seed 17\n"
            "\n"
            "  1 other case fails the same way: edge/b\n");
}

TEST(Transcript, WhatDiesBeforeTheFirstCaseIsRunAgainAsAWhole) {
  Report report;
  report.cases = {make_case(std::string(kBeforeFirstCase), CaseState::kCrash)};
  EXPECT_NE(verdict(report).find("  again   drill m2 --seed 17\n"), std::string::npos)
      << verdict(report);
}

TEST(Transcript, PassSaysWhatItProves) {
  Report report;
  report.cases = {make_case("tiny/a", CaseState::kPass), make_case("huge/a", CaseState::kSkip)};
  report.cases[1].sentence = "needs a GPU";
  EXPECT_EQ(verdict(report),
            "PASS   1 case, 1 skipped (needs a GPU)\n"
            "  note    the emulator proves the logic, not a GPU's memory model or speed\n");
}

TEST(Transcript, SkipGivesTheReason) {
  Report report;
  report.cases = {make_case("tiny/a", CaseState::kSkip)};
  report.cases[0].sentence = "m7 needs compute capability 9.0";
  EXPECT_EQ(verdict(report), "SKIP   m2: m7 needs compute capability 9.0\n");
}

TEST(Transcript, PrintfIsMarkedAndBounded) {
  Report report;
  for (int i = 0; i < 25; ++i) report.output += "line " + std::to_string(i) + "\n";
  report.output_truncated = true;
  const std::vector<std::string> lines = split_lines(output_text(report, scene()));
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines.front(), "your printf | line 0");
  EXPECT_EQ(lines.back(), "your printf | ... 5 more lines, and more that was not kept");
  EXPECT_EQ(output_text(Report(), scene()), "");
}

TEST(Transcript, BuildFailure) {
  Build build;
  build.compiler_text = "x.cu:3:5: error: one\nx.cu:4:5: error: two\n";
  EXPECT_EQ(build_failure_text(scene(), build, "build/cpu/x.log", "use launch().", Paint(false)),
            "BUILD  m2   2 errors   full log: build/cpu/x.log\n"
            "  note    use launch().\n");
}

}  // namespace
}  // namespace moe::driver
