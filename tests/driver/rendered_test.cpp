#include "driver/markdown.h"

#include <gtest/gtest.h>

#include "driver/hints.h"

namespace moe::driver {
namespace {

std::string plain(const std::string& markdown, bool answers = true) {
  RenderOptions options;
  options.answers = answers;
  return rendered(markdown, Paint(false), options);
}

TEST(Rendered, FillsParagraphsAndKeepsCode) {
  EXPECT_EQ(plain("One\ntwo `three`.\n\n```\nx   = 1\n\n```\nAfter."),
            "One two `three`.\n\n    x   = 1\n    \n\nAfter.\n\n");
}

TEST(Rendered, ListsHangBelowTheirMarks) {
  EXPECT_EQ(plain("1. one\n   more\n2. two\n- dash\n"), "1. one more\n2. two\n- dash\n\n");
}

TEST(Rendered, SentencesGoOnBehindABrokenLine) {
  EXPECT_EQ(plain("`block_m` is 64 or\n128. The caller\n"),
            "`block_m` is 64 or 128. The caller\n\n");
  EXPECT_EQ(plain("1. one\n2. two\n"), "1. one\n2. two\n\n");
}

TEST(Rendered, FiguresAreNamedAndBracketsStay) {
  EXPECT_EQ(plain("![a map](figures/map.svg)"), "(figure figures/map.svg: a map)\n\n");
  EXPECT_EQ(plain("in [0, E). See [m2](m2_x.md#expert)."),
            "in [0, E). See m2 (drill notes m2 expert).\n\n");
}

TEST(Rendered, LinksBecomeCommands) {
  EXPECT_EQ(plain("See [gather](m2_grouped_gemm.md#gather)."),
            "See gather (drill notes m2 gather).\n\n");
  EXPECT_EQ(plain("[a page](testing.md) and [a site](https://x.org/y)"),
            "a page and a site (https://x.org/y)\n\n");
  EXPECT_EQ(plain("a **strong** word"), "a strong word\n\n");
}

TEST(Rendered, TablesKeepTheirColumns) {
  EXPECT_EQ(plain("| a | b |\n|---|---|\n| `x | y` | 2 |\n"), "a        b\n`x | y`  2\n\n");
  const std::string wide(70, 'w');
  EXPECT_EQ(plain("| a | b |\n|---|---|\n| 1 | " + wide + wide.substr(60) + " |\n"),
            "1\n    b: " + wide + wide.substr(60) + "\n\n");
}

TEST(Rendered, AnswersFold) {
  const std::string question =
      "1. Why? <details><summary>Answer</summary>Because\n   of it.</details>\n";
  EXPECT_EQ(plain(question), "1. Why? Answer: Because of it.\n\n");
  EXPECT_EQ(plain(question, false), "1. Why? (Answer is folded.)\n\n");
}

TEST(Rendered, SectionsAndTheirSlugs) {
  const std::vector<Section> sections =
      sections_of("# m2: GEMM\n\n## Tiny example\ntext\n```\n# no heading\n```\n### sub_part\nx\n");
  ASSERT_EQ(sections.size(), 3u);
  EXPECT_EQ(sections[0].slug, "m2-gemm");
  EXPECT_EQ(sections[1].slug, "tiny-example");
  EXPECT_EQ(sections[1].level, 2);
  EXPECT_EQ(sections[1].body, "text\n```\n# no heading\n```\n");
  EXPECT_EQ(sections[2].slug, "sub_part");
}

TEST(Hints, LaddersHaveTheirSteps) {
  const std::vector<Ladder> ladders = ladders_of(
      "# Hints\n\nintro\n\n## m2.gather\n\n1. A question?\n2. More, over\n   two lines.\n3. "
      "Code:\n\n"
      "   ```\n   if x:\n     y\n   ```\n\n## m2.store\n\n1. One.\n");
  ASSERT_EQ(ladders.size(), 2u);
  EXPECT_EQ(ladders[0].region, "m2.gather");
  ASSERT_EQ(ladders[0].steps.size(), 3u);
  EXPECT_EQ(ladders[0].steps[1], "More, over\ntwo lines.\n");
  EXPECT_EQ(ladders[0].steps[2], "Code:\n\n```\nif x:\n  y\n```\n\n");
}

}  // namespace
}  // namespace moe::driver
