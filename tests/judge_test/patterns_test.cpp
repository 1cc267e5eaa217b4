// Patterns of wrong values are told where they are, and only there.
#include "../judge/patterns.h"

#include <gtest/gtest.h>

#include <functional>

#include "../judge/random.h"

namespace moe::judge {
namespace {

constexpr Bf16 kPoison = 0x7fa5;
using Lines = std::vector<std::string>;

// What is said of an output that holds `value(row, column)` of a 12 x 20 reference.
Lines said_of(const std::function<double(const Matrix&, int64_t row, int column)>& value) {
  Random random(5);
  Matrix want = {12, 20, {}};
  for (int i = 0; i < 12 * 20; ++i) want.values.push_back(random.normal());
  std::vector<Bf16> out;
  for (int64_t row = 0; row < want.rows; ++row) {
    for (int column = 0; column < want.columns; ++column) {
      out.push_back(to_bf16(value(want, row, column)));
    }
  }
  const std::vector<uint8_t> judged(12, 1);
  return patterns_of_error(out, want, compare(out, want, judged, kPoison, false), judged);
}

TEST(Patterns, TellTheFactor) {
  const auto twice = [](const Matrix& m, int64_t row, int column) {
    return 2.0 * m.at(row, column);
  };
  EXPECT_EQ(said_of(twice), Lines{"the wrong values are 2 times what they should be"});
  // Rows 0 to 5 are right.
  const auto some = [](const Matrix& m, int64_t row, int column) {
    return (row > 5 ? -0.25 : 1.0) * m.at(row, column);
  };
  EXPECT_EQ(said_of(some), Lines{"the wrong values are -0.25 times what they should be"});
}

TEST(Patterns, TellATransposedMatrix) {
  const auto transposed = [](const Matrix& m, int64_t row, int column) {
    const int64_t i = row * m.columns + column;
    return m.at(i % m.rows, static_cast<int>(i / m.rows));
  };
  EXPECT_EQ(said_of(transposed),
            Lines{"the matrix is transposed: its columns stand where rows should"});
}

TEST(Patterns, TellARowThatIsAnother) {
  const auto moved = [](const Matrix& m, int64_t row, int column) {
    return m.at(row == 3 ? 7 : row, column);
  };
  EXPECT_EQ(said_of(moved), Lines{"row 3 holds the values of row 7"});
}

TEST(Patterns, SayNothingOfZerosNanAndNoise) {
  EXPECT_EQ(said_of([](const Matrix&, int64_t, int) { return 0.0; }), Lines{});
  EXPECT_EQ(said_of([](const Matrix&, int64_t, int) { return std::nan(""); }), Lines{});
  Random random(9);
  EXPECT_EQ(said_of([&](const Matrix&, int64_t, int) { return random.normal(); }), Lines{});
}

}  // namespace
}  // namespace moe::judge
