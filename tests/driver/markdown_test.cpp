#include "driver/book/markdown.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

TEST(Markdown, SlugsAreGitHubs) {
  EXPECT_EQ(slug_of("How the work maps"), "how-the-work-maps");
  EXPECT_EQ(slug_of("m2: grouped GEMM, really?"), "m2-grouped-gemm-really");
  EXPECT_EQ(slug_of("`tile_of` & top-k"), "tile_of--top-k");
  EXPECT_EQ(slug_of("先算下限（H200）"), "先算下限h200");
}

TEST(Markdown, HeadingsOutsideOfFencesOnly) {
  const Page page = scan_markdown("# One\n\n```\n# two\n```\n## One\ntext\n### One\n");
  ASSERT_EQ(page.headings.size(), 3u);
  EXPECT_EQ(page.headings[0].slug, "one");
  EXPECT_EQ(page.headings[1].slug, "one-1");
  EXPECT_EQ(page.headings[1].level, 2);
  EXPECT_EQ(page.headings[1].line, 6);
  EXPECT_EQ(page.headings[2].slug, "one-2");
}

TEST(Markdown, LinksAndImages) {
  const Page page = scan_markdown(
      "See [the\nnote](a.md#b) and `[no](x)`, ![](c.svg)\n\n<img src=\"d.svg\" alt=\"a map\">\n"
      "```\n[no](y)\n```\n");
  ASSERT_EQ(page.links.size(), 3u);
  EXPECT_EQ(page.links[0].target, "a.md#b");
  EXPECT_EQ(page.links[0].line, 1);
  EXPECT_FALSE(page.links[0].image);
  EXPECT_TRUE(page.links[1].image);
  EXPECT_EQ(page.links[1].text, "");
  EXPECT_EQ(page.links[2].text, "a map");
  EXPECT_EQ(page.links[2].line, 4);
}

TEST(Markdown, RegionsOverLineEndsAndInCodeSpans) {
  const Page page =
      scan_markdown("Code: `region\nm5.scale_rows in solutions/m5.cu`, region m1.x.\n");
  ASSERT_EQ(page.citations.size(), 2u);
  EXPECT_EQ(page.citations[0].label, "m5.scale_rows");
  EXPECT_EQ(page.citations[1].label, "m1.x");
  ASSERT_EQ(page.code.size(), 1u);
  EXPECT_EQ(page.code[0].label, "region m5.scale_rows in solutions/m5.cu");
}

TEST(Markdown, Blocks) {
  const std::string text = "<!-- BEGIN tiny m1 -->\nold\n<!-- END tiny -->\n<!-- BEGIN other -->\n";
  const Page page = scan_markdown(text);
  ASSERT_EQ(page.blocks.size(), 2u);
  EXPECT_EQ(page.blocks[0].kind, "tiny");
  EXPECT_EQ(page.blocks[0].arguments, "m1");
  EXPECT_TRUE(page.blocks[0].closed);
  EXPECT_EQ(text.substr(page.blocks[0].body, page.blocks[0].size), "old\n");
  EXPECT_FALSE(page.blocks[1].closed);
}

}  // namespace
}  // namespace moe::driver
