#include "driver/hints.h"

#include "driver/markdown.h"

namespace moe::driver {
namespace {

// "3. text" -> "text"; the lines below a number are indented by as much.
std::vector<std::string> numbered_items(std::string_view body) {
  std::vector<std::string> items;
  for (const std::string& line : split_lines(body)) {
    const std::size_t digits = line.find_first_not_of("0123456789");
    const bool begins = digits != 0 && digits != std::string::npos && line[digits] == '.';
    if (begins) {
      items.push_back(line.substr(digits + 2 <= line.size() ? digits + 2 : line.size()) + "\n");
    } else if (!items.empty()) {
      constexpr std::size_t kIndent = 3;
      const std::size_t blanks = line.find_first_not_of(' ');
      items.back() += (blanks == std::string::npos ? "" : line.substr(std::min(blanks, kIndent)));
      items.back() += "\n";
    }
  }
  return items;
}

}  // namespace

std::vector<Ladder> ladders_of(std::string_view markdown) {
  std::vector<Ladder> ladders;
  for (const Section& section : sections_of(markdown)) {
    if (section.level == 2) ladders.push_back({section.title, numbered_items(section.body)});
  }
  return ladders;
}

}  // namespace moe::driver
