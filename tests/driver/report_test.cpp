#include "driver/report.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

constexpr const char* kStart =
    R"({"type":"start","stage":"m2_grouped_gemm","side":"mine","backend":"cpu",)"
    R"("device":"emulator, 2 workers","set":"quick","seed":8841,"cases":2})"
    "\n";
constexpr const char* kEnd = R"({"type":"end","passed":1,"wrong":1})"
                             "\n";

std::string case_line(const std::string& state, const std::string& more = "") {
  return R"({"type":"case","name":"edge/a","state":")" + state + "\"" + more + "}\n";
}

Verdict verdict_of_states(const std::vector<std::string>& states) {
  std::string text = kStart;
  for (const std::string& state : states) text += case_line(state);
  return verdict_of(parse_report(text + kEnd));
}

TEST(Report, ReadsEveryField) {
  const Report report = parse_report(
      kStart +
      case_line("wrong",
                R"(,"seconds":0.5,"shape":"T=5","seed":17,"step":"reversed thread order",)"
                R"("sentence":"You did it.","code":"M2-X","region":"m2.gather","note":"gather",)"
                R"("evidence":["one","two"],"fault":"deadlock","todo":["m2.store"])") +
      R"({"type":"output","text":"hello\n","truncated":false})"
      "\n" +
      R"({"type":"output","text":"again\n","truncated":true})"
      "\n" +
      kEnd);
  EXPECT_TRUE(report.started);
  EXPECT_TRUE(report.ended);
  EXPECT_EQ(report.damaged_lines, 0);
  EXPECT_EQ(report.device, "emulator, 2 workers");
  EXPECT_EQ(report.set, "quick");
  EXPECT_EQ(report.seed, 8841u);
  EXPECT_EQ(report.output, "hello\nagain\n");
  EXPECT_TRUE(report.output_truncated);
  ASSERT_EQ(report.cases.size(), 1u);
  const CaseRecord& one = report.cases.front();
  EXPECT_EQ(one.name, "edge/a");
  EXPECT_EQ(one.state, CaseState::kWrong);
  EXPECT_EQ(one.seconds, 0.5);
  EXPECT_EQ(one.shape, "T=5");
  EXPECT_EQ(one.seed, 17u);
  EXPECT_EQ(one.step, "reversed thread order");
  EXPECT_EQ(one.sentence, "You did it.");
  EXPECT_EQ(one.code, "M2-X");
  EXPECT_EQ(one.region, "m2.gather");
  EXPECT_EQ(one.note, "gather");
  EXPECT_EQ(one.evidence, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(one.fault, "deadlock");
  EXPECT_EQ(one.todo, std::vector<std::string>{"m2.store"});
}

TEST(Report, KeepsWhatCameBeforeADeath) {
  const Report report = parse_report(kStart + case_line("pass") + R"({"type":"case","na)");
  EXPECT_TRUE(report.started);
  EXPECT_FALSE(report.ended);
  EXPECT_EQ(report.cases.size(), 1u);
  EXPECT_EQ(report.damaged_lines, 1);
}

TEST(Report, RecordsOfAnotherFormAreDamaged) {
  for (const std::string& line : {std::string("[]\n"), std::string("{}\n"), case_line("splendid"),
                                  case_line("pass", R"(,"seed":"seventeen")"),
                                  std::string(R"({"type":"case","state":"pass"})") + "\n"}) {
    const Report report = parse_report(line);
    EXPECT_EQ(report.damaged_lines, 1) << line;
    EXPECT_TRUE(report.cases.empty()) << line;
  }
  EXPECT_EQ(parse_report("{\"type\":\"news\"}\n").damaged_lines, 0) << "new types may come";
}

TEST(Verdict, TheFirstOfHangCrashWrongTodoCounts) {
  EXPECT_EQ(verdict_of_states({"pass", "todo", "wrong", "crash", "hang"}), Verdict::kHang);
  EXPECT_EQ(verdict_of_states({"pass", "todo", "wrong", "crash", "not_run"}), Verdict::kCrash);
  EXPECT_EQ(verdict_of_states({"todo", "wrong", "pass"}), Verdict::kWrong);
  EXPECT_EQ(verdict_of_states({"todo", "pass", "skip"}), Verdict::kTodo);
  EXPECT_EQ(verdict_of_states({"pass", "skip"}), Verdict::kPass);
  EXPECT_EQ(verdict_of_states({"skip"}), Verdict::kSkip);
}

TEST(Verdict, NothingToJudgeIsNoPass) {
  EXPECT_EQ(verdict_of_states({}), Verdict::kFault);
  EXPECT_EQ(verdict_of_states({"pass", "not_run"}), Verdict::kFault);
}

}  // namespace
}  // namespace moe::driver
