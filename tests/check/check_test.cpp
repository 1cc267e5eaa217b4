// Each case of tests/check/*.cu is found by its tool, as its kind and at its lines; the right
// kernels give no finding with either tool.
//   check_test     build/cpu-traced/check/check_faults and build/cpu-asan/... must be there
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "driver/fault.h"
#include "driver/finding.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

struct Case {
  std::string name;
  std::string tool;                 // "order" or "memory"; "" for both
  std::string kind;                 // "" for nothing
  std::vector<std::string> places;  // FILE:LINE, sorted
};

std::filesystem::path root() {
  return DRILL_SOURCE_DIR;
}

std::vector<Case> read_cases(const std::string& file) {
  static const std::regex kFault("// case (\\w+), (order|memory): (.+)");
  static const std::regex kNothing("// case (\\w+): nothing");
  std::vector<Case> cases;
  int number = 0;
  for (const std::string& line : split_lines(read_file(root() / file))) {
    ++number;
    std::smatch match;
    if (std::regex_match(line, match, kFault)) {
      cases.push_back({match[1].str(), match[2].str(), match[3].str(), {}});
    } else if (std::regex_match(line, match, kNothing)) {
      cases.push_back({match[1].str(), "", "", {}});
    } else if (line.size() > 5 && line.substr(line.size() - 5) == "// <-" && !cases.empty()) {
      cases.back().places.push_back(file + ":" + std::to_string(number));
    }
  }
  return cases;
}

std::vector<Finding> run_case(const std::string& name, const std::string& tool) {
  const std::string tree = tool == "order" ? "cpu-traced" : "cpu-asan";
  const std::filesystem::path program = root() / "build" / tree / "check/check_faults";
  Command command;
  command.arguments = {program, name};
  command.environment = {"EMULATOR_WATCH=check", "ASAN_OPTIONS=symbolize=0:log_path=/dev/null",
                         "UBSAN_OPTIONS=symbolize=0:log_path=/dev/null"};
  command.limit_s = 120;
  const Outcome outcome = run_process(command);
  EXPECT_NE(outcome.exit_code, 127) << program << " is missing";
  EXPECT_NE(outcome.exit_code, 2) << outcome.output;
  return findings_of_fault(resolve_fault(outcome.output, program, root()));
}

std::string described(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += finding.kind + ": " + finding.sentence + "\n";
    for (const std::string& detail : finding.details) text += "  " + detail + "\n";
  }
  return text;
}

class CheckCase : public testing::Test {
 public:
  explicit CheckCase(Case one) : case_(std::move(one)) {}
  void TestBody() override {
    if (case_.kind.empty()) {
      for (const char* tool : {"order", "memory"}) {
        EXPECT_EQ(described(run_case(case_.name, tool)), "") << tool;
      }
      return;
    }
    const std::vector<Finding> findings = run_case(case_.name, case_.tool);
    const bool found = std::any_of(findings.begin(), findings.end(), [this](const Finding& one) {
      std::vector<std::string> places = one.places;
      std::sort(places.begin(), places.end());
      return one.kind == case_.kind && (places == case_.places || case_.places.empty());
    });
    std::string wanted = case_.kind + " at";
    for (const std::string& place : case_.places) wanted += " " + place;
    EXPECT_TRUE(found) << "not found: " << wanted << "\n" << described(findings);
  }

 private:
  Case case_;
};

void register_cases() {
  for (const char* file : {"memory_faults.cu", "no_faults.cu", "order_faults.cu"}) {
    const std::string path = std::string("tests/check/") + file;
    const std::vector<Case> cases = read_cases(path);
    for (const Case& one : cases) {
      testing::RegisterTest("Check", one.name.c_str(), nullptr, nullptr, file, 1,
                            [one]() -> testing::Test* { return new CheckCase(one); });
    }
  }
}

}  // namespace
}  // namespace moe::driver

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  moe::driver::register_cases();
  return RUN_ALL_TESTS();
}
