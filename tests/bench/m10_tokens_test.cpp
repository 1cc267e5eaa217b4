// How the bench judges m10, at the widths of DeepSeek-V3: thousands of codes of h are open there.
#include "m10_tokens.h"

#include <gtest/gtest.h>

#include "../judge_test/calibrated_fp8_layer.h"
#include "../m1_align_oracle.h"
#include "generated_data.h"

namespace moe::bench {
namespace {

using judge::Fp8LayerWay;

class M10Tokens : public testing::Test {
 protected:
  // Of one token that a kernel with these sums computes.
  judge::Difference difference(void (*change)(Fp8LayerWay&)) const {
    Fp8LayerWay way;
    way.sum = judge::hopper_sum;
    way.by_reciprocal = true;
    way.y = judge::as_bf16;
    change(way);
    return difference_of_tokens({reference_}, {bytes_of(judge::Fp8Layer(problem_, way).out())});
  }

  static judge::Bytes bytes_of(const std::vector<double>& out) {
    std::vector<judge::Bf16> values;
    for (const double value : out) values.push_back(judge::to_bf16(value));
    return judge::bytes_of(values);
  }

  const Shape shape_ = {"D with two slots", 8, 256, 2, 7168, 2048};
  const Routed& routed_ = routed(shape_, 128);
  const oracle::Fp8LayerProblem problem_ = problem_of_token(shape_, routed_.routing.topk_ids, 5);
  const oracle::Fp8LayerReference reference_ = oracle::fp8_layer_reference(problem_);
};

TEST_F(M10Tokens, RightOnesPassAndMildMistakesDoNot) {
  EXPECT_EQ(oracle::route(problem_.logits, 1, 2, 2, true).topk_ids, (std::vector<int32_t>{0, 1}));
  const auto right = difference([](Fp8LayerWay& /*way*/) {});
  EXPECT_TRUE(right.right) << judge::describe(right, "out");
  EXPECT_LT(right.worst, 0.7);
  EXPECT_FALSE(difference([](Fp8LayerWay& way) { way.promoted = false; }).right);
  EXPECT_FALSE(difference([](Fp8LayerWay& way) { way.w_scale = judge::as_bf16; }).right);
  oracle::Fp8LayerMistake mistake;
  mistake.x_power_of_two = true;
  const judge::Bytes other_scales = bytes_of(oracle::moe_layer_fp8(problem_, mistake).values);
  EXPECT_FALSE(judge_tokens({reference_}, {other_scales}).pass());
  EXPECT_TRUE(judge_tokens({reference_}, {bytes_of(reference_.out.values)}).pass());
}

}  // namespace
}  // namespace moe::bench
