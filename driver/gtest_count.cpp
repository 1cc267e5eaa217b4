#include "driver/gtest_count.h"

#include "driver/terminal.h"

namespace moe::driver {
namespace {

// The name in "[  FAILED  ] Suite.Name, where GetParam() = 3 (5 ms)"; "" when the line is of
// another kind. The summary at the end has no "ms)" and does not count twice.
std::string ended_test(const std::string& line, std::string_view mark) {
  if (line.rfind(mark, 0) != 0) return {};
  const std::size_t time = line.rfind(" (");
  if (time == std::string::npos || line.rfind(" ms)") == std::string::npos) return {};
  const std::string name = line.substr(mark.size(), time - mark.size());
  return name.substr(0, name.find(", where "));
}

}  // namespace

void Tally::add(const Tally& other) {
  passed += other.passed;
  failed += other.failed;
  skipped += other.skipped;
}

std::string Tally::text() const {
  return std::to_string(passed) + " passed, " + std::to_string(failed) + " failed, " +
         std::to_string(skipped) + " skipped";
}

GtestResult count_gtest(std::string_view output) {
  constexpr std::string_view kRun = "[ RUN      ] ";
  GtestResult result;
  std::string running;
  for (const std::string& line : split_lines(output)) {
    if (line.rfind(kRun, 0) == 0) {
      running = line.substr(kRun.size());
    } else if (!ended_test(line, "[       OK ] ").empty()) {
      ++result.tally.passed;
      running.clear();
    } else if (!ended_test(line, "[  SKIPPED ] ").empty()) {
      ++result.tally.skipped;
      running.clear();
    } else if (const std::string name = ended_test(line, "[  FAILED  ] "); !name.empty()) {
      ++result.tally.failed;
      result.failures.push_back(name);
      running.clear();
    }
  }
  if (!running.empty()) {
    ++result.tally.failed;
    result.failures.push_back(running);
  }
  return result;
}

}  // namespace moe::driver
