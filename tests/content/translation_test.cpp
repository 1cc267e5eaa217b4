// The Chinese notes name the numbers that the English ones name, section by section. (Pitfalls are
// a selection there; content_test compares headings, regions and blocks.)
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

#include "driver/terminal.h"

namespace moe::content {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> sections_of(const std::string& text) {
  std::vector<std::string> sections;
  for (std::size_t at = text.find("\n## "); at != std::string::npos;) {
    const std::size_t end = text.find("\n## ", at + 1);
    sections.push_back(text.substr(at, end - at));
    at = end;
  }
  return sections;
}

// "32,768" and "1.95", but not the 32 of fp32.
std::set<std::string> numbers_in(const std::string& section) {
  static const std::regex kNumber(R"((^|[^\w.])(\d[\d,.]*\d))");
  std::set<std::string> numbers;
  for (std::sregex_iterator at(section.begin(), section.end(), kNumber), end; at != end; ++at) {
    numbers.insert((*at)[2].str());
  }
  return numbers;
}

TEST(Translation, NamesTheSameNumbers) {
  constexpr std::size_t kPitfalls = 9;
  const fs::path content = fs::path(DRILL_SOURCE_DIR) / "content";
  int notes = 0;
  for (const auto& entry : fs::directory_iterator(content / "zh")) {
    const fs::path name = entry.path().filename();
    const auto chinese = sections_of(driver::read_file(entry.path()));
    const auto english = sections_of(driver::read_file(content / name));
    ASSERT_EQ(chinese.size(), english.size()) << name;
    for (std::size_t i = 0; i < english.size(); ++i) {
      if (i == kPitfalls) continue;
      EXPECT_EQ(numbers_in(chinese[i]), numbers_in(english[i]))
          << name << ":" << english[i].substr(0, english[i].find('\n', 1));
    }
    ++notes;
  }
  EXPECT_GE(notes, 5);
  EXPECT_EQ(numbers_in("fp32 of 1,024 and 2.5 or m16n8k16, 7"),
            (std::set<std::string>{"1,024", "2.5"}));
}

}  // namespace
}  // namespace moe::content
