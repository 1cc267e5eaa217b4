// The worked floors of the notes against the shapes and the data sheet: none is missing, none is
// stale, and what is no floor stands in content/results.
#include <gtest/gtest.h>

#include <algorithm>

#include "content/floors.h"
#include "driver/course.h"
#include "driver/terminal.h"

namespace moe::content {
namespace {

using driver::read_file;

const std::filesystem::path kContent = std::filesystem::path(DRILL_SOURCE_DIR) / "content";

std::string section_of(const std::string& text, const std::string& heading) {
  const std::size_t start = text.find("\n## " + heading + "\n");
  if (start == std::string::npos) return "";
  return text.substr(start, text.find("\n## ", start + 4) - start);
}

bool contains(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// What is wrong with the floors of a section, one fault a line.
std::string faults_of(const std::string& stage, const std::string& section) {
  std::string faults;
  const std::string results =
      read_file(kContent / "results/README.md") + read_file(kContent / "results/ladder.md");
  std::vector<std::string> known = floors_of(stage);
  const std::vector<std::string> found = quantities_in(section);
  for (const std::string& floor : known) {
    if (!contains(found, floor)) faults += "does not say " + floor + "\n";
  }
  for (const MeasuredFloor& measured : measured_floors_of(stage)) {
    known.push_back(measured.text);
    if (results.find(measured.source) == std::string::npos) {
      faults += "no file of content/results has " + measured.source + "\n";
    }
  }
  for (const std::string& text : found) {
    if (contains(known, text) || text == "4.8 TB/s" || text == "989 TFLOPS") continue;
    faults += text + " is no floor of the main shape\n";
  }
  return faults;
}

class Floors : public testing::TestWithParam<std::string> {};

TEST_P(Floors, AreThoseOfTheMainShape) {
  for (const auto& entry : std::filesystem::directory_iterator(kContent)) {
    const std::string name = entry.path().filename();
    if (name.rfind(GetParam() + "_", 0) != 0 || name.find(".hints.") != std::string::npos) continue;
    const std::string english = section_of(read_file(entry.path()), "Lower bound first");
    EXPECT_EQ(faults_of(GetParam(), english), "") << name;
    if (!std::filesystem::exists(kContent / "zh" / name)) continue;
    const std::string chinese = section_of(read_file(kContent / "zh" / name), "先算下限");
    EXPECT_EQ(faults_of(GetParam(), chinese), "") << "zh/" << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Floors,
    testing::Values("m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10"),
    [](const auto& one) { return one.param; });

TEST(FloorsOfNotes, FaultsAreSeen) {
  std::string section;
  for (const std::string& floor : floors_of("m1")) section += "say " + floor + ", ";
  EXPECT_EQ(faults_of("m1", section), "");
  EXPECT_EQ(faults_of("m1", section + "and 3 us"), "3 us is no floor of the main shape\n");
  EXPECT_NE(faults_of("m1", section.substr(section.find(',') + 1)).find("does not say 1.05 MB"),
            std::string::npos);
}

}  // namespace
}  // namespace moe::content
