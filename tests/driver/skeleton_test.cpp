#include "driver/skeleton.h"

#include <gtest/gtest.h>

#include <string>

namespace moe::driver {
namespace {

constexpr const char* kSolution = R"(// m2_topic: an example
int f() {
  // Which row? One division
  // is enough.
  // BEGIN m2.gather
  const int row = 1;

  // a comment does not count
  use(row);
  // STUB: const int row = 0;
  // STUB:   indented(row);
  // END m2.gather
    // BEGIN m2.tail
    last();
    // END m2.tail
  // BEGIN m2.cited (given)
  return row;
  // END m2.cited
}
)";

std::string error_of(const std::string& solution) {
  try {
    find_regions(solution, "solutions/m2_topic.cu", "m2");
  } catch (const MarkerError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Skeleton, ReplacesBodiesAndKeepsTheRest) {
  EXPECT_EQ(make_skeleton(kSolution, "m2_topic.cu", "m2"), R"(// m2_topic: an example
int f() {
  // Which row? One division
  // is enough.
  // BEGIN m2.gather
  // about 2 lines
  DRILL_TODO("m2.gather");
  const int row = 0;
    indented(row);
  // END m2.gather
    // BEGIN m2.tail
    // about 1 line
    DRILL_TODO("m2.tail");
    // END m2.tail
  // BEGIN m2.cited (given)
  return row;
  // END m2.cited
}
)");
}

TEST(Skeleton, FindsRegionsWithTheirInstructions) {
  const std::vector<Region> regions = find_regions(kSolution, "m2_topic.cu", "m2");
  ASSERT_EQ(regions.size(), 3u);
  EXPECT_EQ(regions[0].label, "m2.gather");
  EXPECT_EQ(regions[0].begin_line, 5);
  EXPECT_EQ(regions[0].end_line, 12);
  EXPECT_EQ(regions[0].code_lines, 2);
  EXPECT_EQ(regions[0].instruction, "Which row? One division is enough.");
  EXPECT_EQ(regions[1].instruction, "") << "the END marker above is no instruction";
  EXPECT_FALSE(regions[1].given);
  EXPECT_TRUE(regions[2].given);
}

TEST(Skeleton, CodeMayStandBetweenInstructionAndRegion) {
  const auto instruction = [](const std::string& before) {
    return find_regions(before + "// BEGIN m2.a\nx;\n// END m2.a\n", "x.cu", "m2")[0].instruction;
  };
  EXPECT_EQ(instruction("// Fill it.\nint rows[4] = {};\n"), "Fill it.");
  EXPECT_EQ(instruction("// Too far.\n1;\n2;\n3;\n4;\n"), "");
  EXPECT_EQ(instruction("// Another matter.\n\nint rows[4] = {};\n"), "");
}

TEST(Skeleton, TextWithoutRegionsStaysAsItIs) {
  EXPECT_EQ(make_skeleton("int a;\n\nint b;\n", "x.cu", "m2"), "int a;\n\nint b;\n");
  EXPECT_EQ(make_skeleton("", "x.cu", "m2"), "");
}

TEST(Skeleton, EveryBrokenMarkerIsAnErrorWithFileAndLine) {
  EXPECT_EQ(error_of("// BEGIN m2.a\nx;\n// BEGIN m2.b\n"),
            "solutions/m2_topic.cu:3: BEGIN m2.b inside of region m2.a");
  EXPECT_EQ(error_of("\n// BEGIN m2.a\nx;\n"), "solutions/m2_topic.cu:2: BEGIN m2.a has no END");
  EXPECT_EQ(error_of("x;\n// END m2.a\n"), "solutions/m2_topic.cu:2: END m2.a without a BEGIN");
  EXPECT_EQ(error_of("// BEGIN m2.a\nx;\n// END m2.b\n"),
            "solutions/m2_topic.cu:3: END m2.b closes region m2.a");
  EXPECT_EQ(error_of("// STUB: x;\n"), "solutions/m2_topic.cu:1: STUB outside of a region");
  EXPECT_EQ(error_of("// BEGIN\n"), "solutions/m2_topic.cu:1: BEGIN without a label");
  EXPECT_EQ(error_of("// BEGIN (given)\n"), "solutions/m2_topic.cu:1: BEGIN without a label");
  EXPECT_EQ(error_of("// BEGIN m2.a\nx;\n// END\n"),
            "solutions/m2_topic.cu:3: END without a label");
  EXPECT_EQ(error_of("// BEGIN m2.a\nx;\n// END m2.a\n// BEGIN m2.a\n"),
            "solutions/m2_topic.cu:4: label m2.a is used twice");
  EXPECT_EQ(error_of("// BEGIN m2.a (given)\n// STUB: x;\n"),
            "solutions/m2_topic.cu:2: STUB in the given region m2.a");
  EXPECT_EQ(error_of("// BEGIN m2.a (gven)\n"),
            "solutions/m2_topic.cu:1: unknown words after the label: (gven)");
  EXPECT_EQ(error_of("// BEGIN m2.a\n// STUB: x;\n// END m2.a\n"),
            "solutions/m2_topic.cu:3: region m2.a holds no code");
}

TEST(Skeleton, LabelsBelongToTheStage) {
  for (const char* label : {"m1.gather", "gather", "m2.", "m2.Gather", "m20.gather", "m2.a.b"}) {
    EXPECT_EQ(error_of("// BEGIN " + std::string(label) + "\n"),
              "solutions/m2_topic.cu:1: label " + std::string(label) +
                  " is not of the form m2.some_name");
  }
}

TEST(Skeleton, WordsThatOnlyLookLikeMarkersAreComments) {
  EXPECT_EQ(error_of("// BEGINNING of it\n// ENDLESS\n// Begin m2.a\nx; // BEGIN m2.a\n"),
            "no error");
}

TEST(Blanks, FollowTheLearnersFile) {
  const std::vector<Region> regions = find_regions(kSolution, "m2_topic.cu", "m2");
  const std::string skeleton = make_skeleton(kSolution, "m2_topic.cu", "m2");

  std::vector<Blank> blanks = find_blanks(regions, skeleton);
  ASSERT_EQ(blanks.size(), 2u) << "given regions are no blanks";
  EXPECT_FALSE(blanks[0].written);
  EXPECT_EQ(blanks[0].line, 5);
  EXPECT_EQ(blanks[1].line, 11);

  // The learner writes the first one, and drops the markers of the second.
  blanks = find_blanks(regions, "// BEGIN m2.gather\nrow();\n  DRILL_TODO( \"m2.tail\" );\n");
  EXPECT_TRUE(blanks[0].written);
  EXPECT_EQ(blanks[0].line, 1);
  EXPECT_FALSE(blanks[1].written);
  EXPECT_EQ(blanks[1].line, 0);
}

TEST(Blanks, ACommentedOutTodoIsWritten) {
  EXPECT_TRUE(has_todo("  DRILL_TODO(\"m2.a\");  // still to do", "m2.a"));
  EXPECT_FALSE(has_todo("  // DRILL_TODO(\"m2.a\");", "m2.a"));
  EXPECT_FALSE(has_todo("  DRILL_TODO(\"m2.ab\");", "m2.a"));
}

TEST(Blanks, MarkerLineIgnoresLongerLabels) {
  EXPECT_EQ(marker_line("// BEGIN m2.ab\n// BEGIN m2.a (given)\n", "m2.a"), 2);
  EXPECT_EQ(marker_line("// END m2.a\n", "m2.a"), 0);
}

}  // namespace
}  // namespace moe::driver
