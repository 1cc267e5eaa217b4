#include "driver/course.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

TEST(Course, FindsAStageByIdStemOrFileInAnyCase) {
  for (const char* name : {"m2", "M2", "m2_grouped_gemm", "M2_Grouped_GEMM", "m2_grouped_gemm.cu",
                           "mine/m2_grouped_gemm.cu", "/a b/solutions/m2_grouped_gemm.cu"}) {
    const Stage* stage = find_stage(name);
    ASSERT_NE(stage, nullptr) << name;
    EXPECT_STREQ(stage->id, "m2");
  }
  for (const char* name : {"", "m", "m2_", "mm2", "m22", "gemm"}) {
    EXPECT_EQ(find_stage(name), nullptr) << name;
  }
}

TEST(Course, SourceNames) {
  const Stage& stage = *find_stage("m2");
  EXPECT_EQ(source_name(stage, "mine"), "mine/m2_grouped_gemm.cu");
  EXPECT_EQ(source_name(stage, "solution"), "solutions/m2_grouped_gemm.cu");
}

TEST(EditDistance, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("list", "list"), 0u);
  EXPECT_EQ(edit_distance("", "list"), 4u);
  EXPECT_EQ(edit_distance("lisst", "list"), 1u);
  EXPECT_EQ(edit_distance("lost", "list"), 1u);
  EXPECT_EQ(edit_distance("lsit", "list"), 1u);
  EXPECT_EQ(edit_distance("docter", "doctor"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, NamesTheClosestWithinTheLimit) {
  const std::vector<std::string> verbs{"list", "reset", "doctor", "selftest"};
  EXPECT_EQ(nearest("lits", verbs, 3), "list");
  EXPECT_EQ(nearest("RESTE", verbs, 3), "reset");
  EXPECT_EQ(nearest("doc", verbs, 3), "doctor");
  EXPECT_EQ(nearest("compile-everything", verbs, 3), "");
}

}  // namespace
}  // namespace moe::driver
