#include "driver/terminal.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

TEST(Terminal, WrapsWithAHangingIndent) {
  EXPECT_EQ(wrapped("  note  ", "one two three four", 18),
            "  note  one two\n"
            "        three four\n");
  EXPECT_EQ(wrapped("> ", "", 18), "> \n");
  EXPECT_EQ(wrapped("> ", "a-word-that-is-too-long b", 10), "> a-word-that-is-too-long\n  b\n");
}

TEST(Terminal, ShortensLists) {
  EXPECT_EQ(name_list({"a", "b", "c"}, 80), "a, b, c");
  EXPECT_EQ(name_list({}, 80), "");
  EXPECT_EQ(name_list({"edge/one", "edge/two", "edge/three", "edge/four"}, 35),
            "edge/one, edge/two, and 2 more");
}

TEST(Terminal, QuotesForAShell) {
  EXPECT_EQ(shell_quoted("edge/k1"), "edge/k1");
  EXPECT_EQ(shell_quoted("/a b/c"), "'/a b/c'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_quoted(""), "''");
}

TEST(Terminal, MakesControlBytesVisible) {
  EXPECT_EQ(without_control_bytes("a\tb\033[31mred\r\n\x7f"), "a    b\\x1b[31mred\\x0d\\x0a\\x7f");
  EXPECT_EQ(without_control_bytes("h\xc3\xa4"), "h\xc3\xa4");
}

TEST(Terminal, Counts) {
  EXPECT_EQ(counted(1, "case"), "1 case");
  EXPECT_EQ(counted(0, "case"), "0 cases");
  EXPECT_EQ(padded("ab", 4), "ab  ");
  EXPECT_EQ(padded("abcdef", 4), "abcdef");
  EXPECT_EQ(seconds_text(1.26), "1.3 s");
}

TEST(Terminal, SplitsLines) {
  EXPECT_EQ(split_lines("a\n\nb"), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split_lines("a\n"), std::vector<std::string>{"a"});
  EXPECT_TRUE(split_lines("").empty());
}

TEST(Terminal, PaintsOnlyWhenEnabled) {
  EXPECT_EQ(Paint(false).bad("x"), "x");
  EXPECT_EQ(Paint(true).bad("x"), "\033[1;31mx\033[0m");
}

}  // namespace
}  // namespace moe::driver
