#include "driver/gtest_count.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

TEST(GtestCount, CountsEveryOutcomeOnce) {
  const GtestResult result = count_gtest(
      "[ RUN      ] A.Good\n"
      "[       OK ] A.Good (0 ms)\n"
      "[ RUN      ] A.Bad/3\n"
      "x.cpp:3: Failure\n"
      "[  FAILED  ] A.Bad/3, where GetParam() = 8 (1 ms) (12 ms)\n"
      "[ RUN      ] A.Skipped\n"
      "[  SKIPPED ] A.Skipped (0 ms)\n"
      "[==========] 3 tests from 1 test suite ran. (12 ms total)\n"
      "[  PASSED  ] 1 test.\n"
      "[  SKIPPED ] 1 test, listed below:\n"
      "[  SKIPPED ] A.Skipped\n"
      "[  FAILED  ] 1 test, listed below:\n"
      "[  FAILED  ] A.Bad/3, where GetParam() = 8\n");
  EXPECT_EQ(result.tally.text(), "1 passed, 1 failed, 1 skipped");
  EXPECT_EQ(result.failures, std::vector<std::string>{"A.Bad/3"});
}

TEST(GtestCount, ATestThatNeverEndedFailed) {
  const GtestResult result = count_gtest(
      "[ RUN      ] A.Good\n"
      "[       OK ] A.Good (0 ms)\n"
      "[ RUN      ] A.Dies\n"
      "Segmentation fault\n");
  EXPECT_EQ(result.tally.text(), "1 passed, 1 failed, 0 skipped");
  EXPECT_EQ(result.failures, std::vector<std::string>{"A.Dies"});
}

TEST(GtestCount, OtherOutputCountsNothing) {
  EXPECT_EQ(count_gtest("ldmatrix.x4: 0 wrong\n").tally.text(), "0 passed, 0 failed, 0 skipped");
}

}  // namespace
}  // namespace moe::driver
