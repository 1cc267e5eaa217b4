// The checker itself must not be fooled: right outputs pass, and every cheap way to look right does
// not.
#include "../judge/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../judge/random.h"

namespace moe::judge {
namespace {

constexpr Bf16 kPoisonBf16 = 0x7fa5;
constexpr Fp32 kPoisonFp32 = 0x7fe5c3e1;

Bf16 stored(double value, Bf16) {
  return to_bf16(value);
}
Fp32 stored(double value, Fp32) {
  return to_fp32(value);
}

template <class T>
constexpr T kPoisonOf = sizeof(T) == 2 ? static_cast<T>(kPoisonBf16) : static_cast<T>(kPoisonFp32);

// A reference and the output of a right kernel.
template <class T>
struct Sample {
  Matrix want;
  std::vector<T> out;
  std::vector<uint8_t> judged;

  Sample(int64_t rows, int columns, uint64_t seed) : want{rows, columns, {}} {
    Random random(seed);
    for (int64_t i = 0; i < rows * columns; ++i) {
      want.values.push_back(random.normal());
      out.push_back(stored(want.values.back() * (1.0 + 1e-7 * random.normal()), T{}));
    }
    judged.assign(static_cast<size_t>(rows), 1);
  }
  // Integers, where outputs must be equal.
  static Sample integers(int64_t rows, int columns) {
    Sample sample(rows, columns, 1);
    for (size_t i = 0; i < sample.out.size(); ++i) {
      sample.want.values[i] = static_cast<double>(i * 7 % 41) - 20.0;
      sample.out[i] = stored(sample.want.values[i], T{});
    }
    return sample;
  }

  T* row(int64_t index) { return out.data() + index * want.columns; }
  Difference compared(bool exact = false) const {
    return compare(out, want, judged, kPoisonOf<T>, exact);
  }
  bool right(bool exact = false) const { return compared(exact).right; }
};

template <class T>
class Compare : public testing::Test {};
using Types = testing::Types<Bf16, Fp32>;
TYPED_TEST_SUITE(Compare, Types);

TYPED_TEST(Compare, AcceptsTheRightOutput) {
  EXPECT_TRUE(Sample<TypeParam>(40, 72, 3).right());
  EXPECT_TRUE(Sample<TypeParam>(1, 1, 3).right());
  EXPECT_TRUE(Sample<TypeParam>::integers(40, 72).right(true));
}

TYPED_TEST(Compare, RejectsZeros) {
  Sample<TypeParam> sample(40, 72, 3);
  std::fill(sample.out.begin(), sample.out.end(), TypeParam{0});
  const Difference d = sample.compared();
  EXPECT_FALSE(d.right);
  EXPECT_GT(d.zero, 40 * 72 - 30);  // the others are near 0
  EXPECT_FALSE(sample.right(true));
}

// Where outputs are tiny an absolute tolerance would pass zeros.
TYPED_TEST(Compare, RejectsZerosOfTinyOutputs) {
  Sample<TypeParam> sample(40, 72, 3);
  for (double& value : sample.want.values) value *= 1e-9;
  std::fill(sample.out.begin(), sample.out.end(), TypeParam{0});
  EXPECT_FALSE(sample.right());
}

TYPED_TEST(Compare, RejectsPoison) {
  Sample<TypeParam> sample(40, 72, 3);
  std::fill(sample.out.begin(), sample.out.end(), kPoisonOf<TypeParam>);
  const Difference d = sample.compared();
  EXPECT_FALSE(d.right);
  EXPECT_EQ(d.untouched, 40 * 72);
}

TYPED_TEST(Compare, RejectsOneNan) {
  for (const bool exact : {false, true}) {
    Sample<TypeParam> sample = Sample<TypeParam>::integers(40, 72);
    sample.row(17)[5] = stored(std::numeric_limits<double>::quiet_NaN(), TypeParam{});
    const Difference d = sample.compared(exact);
    EXPECT_FALSE(d.right);
    EXPECT_EQ(d.nan, 1);
    EXPECT_TRUE(std::isnan(d.total) || exact);
  }
}

TYPED_TEST(Compare, RejectsNothingButNan) {
  Sample<TypeParam> sample(40, 72, 3);
  const TypeParam nan = stored(std::numeric_limits<double>::quiet_NaN(), TypeParam{});
  std::fill(sample.out.begin(), sample.out.end(), nan);
  EXPECT_FALSE(sample.right());
  EXPECT_FALSE(sample.right(true));
}

TYPED_TEST(Compare, RejectsInfinity) {
  Sample<TypeParam> sample(40, 72, 3);
  sample.row(0)[0] = stored(std::numeric_limits<double>::infinity(), TypeParam{});
  EXPECT_FALSE(sample.right());
}

TYPED_TEST(Compare, RejectsTheOutputOfTheCaseBefore) {
  Sample<TypeParam> sample(40, 72, 3);
  sample.out = Sample<TypeParam>(40, 72, 4).out;
  EXPECT_FALSE(sample.right());
}

TYPED_TEST(Compare, RejectsTwoRowsSwapped) {
  Sample<TypeParam> sample(32'768, 16, 3);
  std::swap_ranges(sample.row(100), sample.row(101), sample.row(30'000));
  const Difference d = sample.compared();
  EXPECT_FALSE(d.right);
  EXPECT_EQ(d.rows, (std::vector<int64_t>{100, 30'000}));
}

// One row of 32,768 changes the norm of all by less than any gate on the whole could see.
TYPED_TEST(Compare, RejectsOneRowOfManyWrong) {
  Sample<TypeParam> sample(32'768, 16, 3);
  for (int column = 0; column < 16; ++column) {
    sample.row(32'767)[column] = stored(1.02 * sample.want.at(32'767, column), TypeParam{});
  }
  const Difference d = sample.compared();
  EXPECT_FALSE(d.right);
  EXPECT_LT(d.total, Gates{}.total);
  EXPECT_EQ(d.rows, std::vector<int64_t>{32'767});
}

TYPED_TEST(Compare, RejectsOneElementOff) {
  Sample<TypeParam> sample(40, 72, 3);
  sample.row(39)[71] = stored(sample.want.at(39, 71) + 0.05, TypeParam{});
  const Difference d = sample.compared();
  EXPECT_FALSE(d.right);
  EXPECT_EQ(d.wrong_elements, 1);
  EXPECT_EQ(d.columns, std::vector<int>{71});
}

TYPED_TEST(Compare, RejectsOneBitWhereTheOutputIsExact) {
  Sample<TypeParam> sample = Sample<TypeParam>::integers(40, 72);
  sample.row(3)[4] = static_cast<TypeParam>(sample.row(3)[4] ^ 1);
  EXPECT_FALSE(sample.right(true));
}

// A small error in every value, none of which is far off.
TYPED_TEST(Compare, RejectsASmallErrorEverywhere) {
  Sample<TypeParam> sample(40, 72, 3);
  for (size_t i = 0; i < sample.out.size(); ++i) {
    sample.out[i] = stored(sample.want.values[i] * 1.01, TypeParam{});
  }
  EXPECT_FALSE(sample.right());
}

TYPED_TEST(Compare, WantsZeroWhereTheReferenceIsZero) {
  Sample<TypeParam> sample(4, 16, 3);
  for (int column = 0; column < 16; ++column) {
    sample.want.values[16 + static_cast<size_t>(column)] = 0.0;
    sample.row(1)[column] = stored(0.0, TypeParam{});
  }
  EXPECT_TRUE(sample.right());
  sample.row(1)[7] = stored(1e-6, TypeParam{});
  EXPECT_FALSE(sample.right());
}

TYPED_TEST(Compare, LooksAtJudgedRowsOnly) {
  Sample<TypeParam> sample(4, 16, 3);
  sample.judged[2] = 0;
  std::fill_n(sample.row(2), 16, kPoisonOf<TypeParam>);
  EXPECT_TRUE(sample.right());
  sample.judged[2] = 1;
  EXPECT_FALSE(sample.right());
}

// ---- Models

TEST(Agreement, NamesAModelOnlyWhereItExplainsTheWrongValues) {
  Sample<Bf16> sample(40, 72, 3);
  Matrix twice = sample.want;
  for (double& value : twice.values) value *= 2.0;
  for (size_t i = 0; i < sample.out.size(); ++i) sample.out[i] = to_bf16(twice.values[i]);
  const auto difference = sample.compared();
  const auto of_twice = agreement(sample.out, twice, difference, sample.judged, kPoisonBf16);
  EXPECT_EQ(of_twice.on_wrong, 1.0);
  EXPECT_EQ(of_twice.on_all, 1.0);
  const auto of_right = agreement(sample.out, sample.want, difference, sample.judged, kPoisonBf16);
  EXPECT_LT(of_right.on_wrong, 0.01);
}

TEST(Agreement, TellsNeverWrittenFromNan) {
  Sample<Bf16> sample(4, 16, 3);
  std::fill(sample.out.begin(), sample.out.end(), kPoisonBf16);
  Matrix untouched = sample.want;
  std::fill(untouched.values.begin(), untouched.values.end(), kUntouched);
  Matrix nan = sample.want;
  std::fill(nan.values.begin(), nan.values.end(), std::numeric_limits<double>::quiet_NaN());
  const auto difference = sample.compared();
  const auto share = [&](const Matrix& model) {
    return agreement(sample.out, model, difference, sample.judged, kPoisonBf16).on_all;
  };
  EXPECT_EQ(share(untouched), 1.0);
  EXPECT_EQ(share(nan), 0.0);
}

}  // namespace
}  // namespace moe::judge
