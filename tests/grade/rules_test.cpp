// The rules about text and symbols, and the commands of the build tree.
#include <gtest/gtest.h>

#include "driver/grade/recipe.h"
#include "driver/grade/rules.h"
#include "driver/grade/source_text.h"
#include "driver/terminal.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

std::string first_break(const std::string& text) {
  const std::vector<RuleBreak> broken = check_source(text, "f.cu");
  return broken.empty() ? "" : broken.front().sentence;
}

TEST(RulesTest, CommentsAndStringsAreNoCode) {
  EXPECT_EQ(code_only("a // asm\nb /* asm\n*/ c \"asm\\\"\" d 'x' 1'000 R\"(asm\n)\" e\n"),
            "a \nb \n  c \"\" d '' 1'000 \"\" e\n\n");
  EXPECT_EQ(first_break("// asm\n/* #pragma x */ const char* s = \"asm\"; int asm_like;\n"), "");
  EXPECT_EQ(first_break("const char* s = R\"x(\" )\" asm(\"\"); )x\";\n"), "");
}

TEST(RulesTest, FindsWhatIsForbidden) {
  EXPECT_EQ(first_break("int x;\nasm(\"nop\");\n"),
            "f.cu:2: inline assembly is not allowed; drills/ptx.h has what the stages need");
  EXPECT_NE(first_break("as\\\nm(\"nop\");\n"), "");
  EXPECT_NE(first_break("  # /* x */ pragma weak x\n"), "");
  EXPECT_EQ(first_break("#pragma unroll 4\n#pragma once\n"), "");
  EXPECT_NE(first_break("_Pragma(\"weak x\")\n"), "");
  EXPECT_NE(first_break("#include \"/etc/passwd\"\n"), "");
  EXPECT_NE(first_break("%: include <../solutions/m1_align.cu>\n"), "");
  EXPECT_EQ(first_break("#include <cmath>\n#include \"drills/m1_align.h\"\n"), "");
  EXPECT_NE(first_break("#line 3 \"x\"\n"), "");
  EXPECT_NE(first_break("# 3 \"x\"\n"), "");
}

TEST(RulesTest, OurOwnSolutionsKeepThem) {
  for (const Stage& stage : kStages) {
    const std::string name = driver::source_name(stage, "solution");
    const std::string text = driver::read_file(std::string(DRILL_SOURCE_DIR) + "/" + name);
    ASSERT_FALSE(text.empty());
    EXPECT_TRUE(check_source(text, name).empty()) << first_break(text);
  }
}

TEST(RulesTest, Dependencies) {
  const std::string depends =
      "/w/a.o: /w/mine/m1.cu /c/drills/m1.h \\\n /usr/include/c++/x \\\n /c/y\n";
  EXPECT_TRUE(check_depends(depends, {"/w/", "/c/", "/usr/"}).empty());
  EXPECT_EQ(check_depends(depends, {"/w/", "/usr/"}).size(), 2u);
  EXPECT_EQ(check_depends("a: /c/../x/solutions/m1.cu\n", {"/c/"}).front().sentence,
            "solutions/ is not available while grading");
}

TEST(RulesTest, Symbols) {
  const auto check = [](const std::string& nm) {
    return check_symbols(parse_symbols(nm), {"_ZN8emulator5faultEv", "clock_gettime", "recvmsg"},
                         {"cudaGetDriverEntryPointByVersion"}, "mine/m1.cu");
  };
  EXPECT_TRUE(check("0000 T _ZN3moe4mine5alignEPi\n0000 u blockIdx\n     U memcpy\n"
                    "0000 W _ZNSt6vectorIiE9push_backEi\n")
                  .broken.empty());
  EXPECT_EQ(check("0000 T main\n").broken.front().sentence, "mine/m1.cu must not define main");
  EXPECT_EQ(check("0000 T clock_gettime\n").broken.front().sentence,
            "symbol clock_gettime belongs to the test harness");
  EXPECT_EQ(check("0000 W _ZN8emulator5faultEv\n").broken.size(), 1u);
  EXPECT_EQ(check("     U _Z15cudaDeviceResetv\n").broken.front().sentence,
            "cudaDeviceReset is used; the device belongs to the test harness");
  EXPECT_TRUE(check("     U cudaGetDriverEntryPointByVersion\n").broken.empty())
      << "drills/hopper.h asks it for the encoder of tensor maps";
  EXPECT_EQ(check("     U cudaGetDriverEntryPoint\n").broken.size(), 1u);
  EXPECT_EQ(check("     U __real_cudaMalloc\n").broken.front().sentence,
            "__real_cudaMalloc is used; it belongs to the test harness");
  const SymbolCheck helper = check("0000 T my_helper\n");
  EXPECT_TRUE(helper.broken.empty()) << "a visible helper is careless, not a cheat";
  EXPECT_EQ(helper.to_hide, std::vector<std::string>{"my_helper"});
}

TEST(RecipeTest, WordsOfACommand) {
  const std::vector<std::string> words{"c++", "-D=a b", "it's", "x y"};
  EXPECT_EQ(shell_words("c++  \"-D=a b\" it\\'s 'x y'"), words);
}

}  // namespace
}  // namespace moe::grade
