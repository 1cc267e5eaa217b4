// Gates must lie between right kernels and mistakes, with a factor of two on either side.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "../judge/compare.h"

namespace moe::judge {

// How far an output is off, in units of each gate.
struct Reading {
  double total = 0.0;
  double row = 0.0;
  double element = 0.0;
  double most() const { return std::max({total, row, element}); }
  void take_larger(const Reading& other) {
    total = std::max(total, other.total);
    row = std::max(row, other.row);
    element = std::max(element, other.element);
  }
};

template <class Problem, class T>
struct Variant {
  std::string name;
  std::function<std::vector<T>(const Problem&)> output;
  // A mistake as small as the last rounding: random data can't show it, so integers must.
  bool only_exact = false;
};

template <class Problem, class T>
struct Calibration {
  std::string name;
  Gates gates;
  std::vector<Problem> random;  // judged with the gates
  std::vector<Problem> exact;   // judged bit by bit
  std::function<Matrix(const Problem&)> want;
  std::function<std::vector<uint8_t>(const Problem&)> judged;
  std::vector<Variant<Problem, T>> right;
  std::vector<Variant<Problem, T>> wrong;
  // Where a stage doesn't judge random data by `gates` alone: what `random` reads.
  std::function<Reading(const Problem&, const std::vector<T>& out)> reading = nullptr;
};

inline constexpr double kFactor = 2.0;

template <class Problem, class T>
class Calibrator {
 public:
  explicit Calibrator(const Calibration<Problem, T>& c) : c_(c) {
    for (const Problem& p : c.random) random_.push_back(c.want(p));
    for (const Problem& p : c.exact) exact_.push_back(c.want(p));
  }

  // 2 x the worst right variant <= gate, and every right variant is exact where the data are.
  void check_right() const {
    Reading worst;
    for (const auto& variant : c_.right) {
      for (size_t i = 0; i < c_.random.size(); ++i) {
        const Reading one = read(variant, c_.random[i], random_[i]);
        EXPECT_LE(one.most(), 1.0 / kFactor) << c_.name << ", right: " << variant.name;
        worst.take_larger(one);
      }
      EXPECT_FALSE(caught_exactly(variant)) << c_.name << ", right: " << variant.name;
    }
    say("right, the worst of " + std::to_string(c_.right.size()), worst);
  }

  // gate <= half of each mistake, in at least one case of the suite; or integers show it.
  void check_wrong() const {
    for (const auto& variant : c_.wrong) {
      Reading best;
      for (size_t i = 0; i < c_.random.size(); ++i) {
        best.take_larger(read(variant, c_.random[i], random_[i]));
      }
      const bool exactly = caught_exactly(variant);
      say(variant.name + (exactly ? " (integers show it)" : ""), best);
      if (variant.only_exact) {
        EXPECT_TRUE(exactly) << c_.name << ", wrong: " << variant.name;
      } else {
        EXPECT_GE(best.most(), kFactor) << c_.name << ", wrong: " << variant.name;
      }
    }
  }

 private:
  static constexpr T kPoison = 0x7fa5;

  Reading read(const Variant<Problem, T>& variant, const Problem& p, const Matrix& want) const {
    if (c_.reading) return c_.reading(p, variant.output(p));
    const auto d = compare(variant.output(p), want, c_.judged(p), kPoison, false, c_.gates);
    return {d.total / c_.gates.total, d.worst_row / c_.gates.row, d.worst};
  }

  bool caught_exactly(const Variant<Problem, T>& variant) const {
    for (size_t i = 0; i < c_.exact.size(); ++i) {
      const Problem& p = c_.exact[i];
      if (!compare(variant.output(p), exact_[i], c_.judged(p), kPoison, true).right) return true;
    }
    return false;
  }

  void say(const std::string& what, const Reading& r) const {
    std::printf("  %-18s %-52s total %8.3g  row %8.3g  element %8.3g of their gates\n",
                c_.name.c_str(), what.c_str(), r.total, r.row, r.element);
  }

  const Calibration<Problem, T>& c_;
  std::vector<Matrix> random_;
  std::vector<Matrix> exact_;
};

template <class Problem, class T>
void calibrate(const Calibration<Problem, T>& c) {
  ASSERT_FALSE(c.random.empty()) << c.name;
  const Calibrator<Problem, T> calibrator(c);
  calibrator.check_right();
  calibrator.check_wrong();
}

}  // namespace moe::judge
