#include "driver/layer.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

class LayerTest : public testing::Test {
 protected:
  // "msm": mine, solution, mine of m1 to m3, of which m1 and m3 have passed.
  std::string sides(bool solution, const std::string& with) {
    LayerOptions options;
    options.solution = solution;
    options.with = with;
    std::string letters;
    for (const auto& [id, side] : layer_sides(
             options, {kStages[0], kStages[1], kStages[2]},
             [](const Stage& stage) { return std::string(stage.id) != "m2"; }, problem_)) {
      letters += side[0];
    }
    return letters;
  }

  std::string problem_;
};

TEST_F(LayerTest, YoursWhereItHasPassedUnlessSaidOtherwise) {
  EXPECT_EQ(sides(false, ""), "msm");
  EXPECT_EQ(sides(true, ""), "sss");
  EXPECT_EQ(sides(true, "m2=mine"), "sms");
  EXPECT_EQ(sides(false, "m1=solution,m2=mine"), "smm");
  EXPECT_EQ(problem_, "");
}

TEST_F(LayerTest, WhatWithDoesNotKnow) {
  for (const char* with : {"m9=mine", "m1", "m1=yours", "m1=mine,,m2=mine"}) {
    problem_.clear();
    sides(false, with);
    EXPECT_NE(problem_, "") << with;
  }
}

}  // namespace
}  // namespace moe::driver
