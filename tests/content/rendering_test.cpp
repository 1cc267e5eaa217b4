// What GitHub does with the Markdown and a reader of the source would not see.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "driver/sweep.h"
#include "driver/terminal.h"

namespace moe::content {
namespace {

// A line that starts with <details> is HTML up to the next empty line: Markdown stays as it is.
std::string markup_in_html(const std::string& text) {
  static const std::regex kHtml(R"((?:^|\n) *<details>(?:[^\n]|\n(?!\n))*)");
  for (std::sregex_iterator at(text.begin(), text.end(), kHtml), end; at != end; ++at) {
    std::string html = at->str();
    html = html.substr(0, html.find("</details>"));
    if (html.find('`') != std::string::npos || html.find("](") != std::string::npos) return html;
  }
  return "";
}

TEST(Rendering, NoMarkdownStandsInHtml) {
  const std::filesystem::path root = DRILL_SOURCE_DIR;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "content")) {
    if (entry.path().extension() != ".md") continue;
    EXPECT_EQ(markup_in_html(driver::read_file(entry.path())), "") << entry.path();
  }
  EXPECT_NE(markup_in_html("1. Why?\n   <details><summary>A</summary>`x`</details>\n"), "");
  EXPECT_EQ(markup_in_html("1. Why? <details><summary>A</summary>`x`</details>\n"), "");
}

// `drill sweep --plot` writes it again.
TEST(Rendering, SweepsAreDrawnFromTheirFiles) {
  int drawn = 0;
  const std::filesystem::path results = std::filesystem::path(DRILL_SOURCE_DIR) / "content/results";
  for (const auto& entry : std::filesystem::directory_iterator(results)) {
    std::filesystem::path file = entry.path();
    if (file.extension() != ".tsv" || !file.stem().string().starts_with("sweep")) continue;
    const driver::Sweep sweep = driver::parse_sweep(driver::read_file(file));
    EXPECT_EQ(driver::read_file(file.replace_extension(".svg")), driver::svg_of(sweep)) << file;
    ++drawn;
  }
  EXPECT_GE(drawn, 1);
}

}  // namespace
}  // namespace moe::content
