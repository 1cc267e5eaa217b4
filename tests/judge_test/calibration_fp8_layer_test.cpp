// The gates of m10 (calibration_test.cpp says what is checked). It has several, of which each case
// has one (m10_fp8_hopper_judge.h), so all readings are in units of the case's gates.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "../judge/models.h"
#include "../m10_fp8_hopper_cases.h"
#include "../m10_fp8_hopper_judge.h"
#include "../m10_fp8_hopper_oracle.h"
#include "calibrated_fp8_layer.h"
#include "calibrated_sums.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using m10_cases::Data;
using m10_cases::Fp8LayerCase;
using oracle::Fp8LayerMistake;
using oracle::Fp8LayerProblem;

// ---- The cases

struct Judged {
  Fp8LayerCase c;
  Fp8LayerProblem p;
  oracle::Fp8LayerReference reference;
};

template <class T>
using Output = std::function<std::vector<T>(const Judged&)>;

template <class T>
std::vector<T> as(const std::vector<double>& values) {
  std::vector<T> out;
  for (const double value : values) out.push_back(stored(value, T{}));
  return out;
}

template <class T>
Output<T> layer(const Fp8LayerWay& way) {
  return [way](const Judged& j) { return as<T>(Fp8Layer(j.p, way).out()); };
}

template <class T>
Output<T> mistaken(const Fp8LayerMistake& mistake) {
  return [mistake](const Judged& j) { return as<T>(oracle::moe_layer_fp8(j.p, mistake).values); };
}

template <class T>
Reading reading_of(const Judged& j, const std::vector<T>& out) {
  const Matrix want = m10_cases::wanted(j.p, j.reference, out);
  const auto judged = m10_cases::judged_tokens(j.p, want);
  const Gates gates = m10_cases::gates_of(j.c);
  const auto d = compare(out, want, judged, T{0x7fa5}, false, gates);
  return {d.total / gates.total, d.worst_row / gates.row, d.worst};
}

// The suite's cases, with as few tokens as take no time here: the tokens of a case are alike.
// `rows` has the data of other groups.
template <class T>
std::vector<Judged> judged_cases(bool long_sums) {
  std::vector<Judged> cases;
  for (Fp8LayerCase c : m10_cases::kCases) {
    const bool is_of_type = c.out_fp32 == (sizeof(T) == 4);
    const bool is_new = std::string(c.group) != "rows" && c.data != Data::kNan;
    const bool is_long = std::string(c.group) == "promotion";
    if (c.refused || !is_of_type || c.num_tokens == 0 || !is_new || is_long != long_sums) continue;
    const int most = is_long ? 1'100'000 : 100'000;
    c.num_tokens =
        std::clamp(most / (c.top_k * c.hidden_size * c.intermediate_size), 1, c.num_tokens);
    Fp8LayerProblem p = m10_cases::make_problem(c, mix(1, c.name));
    auto reference = oracle::fp8_layer_reference(p);
    cases.push_back({c, std::move(p), std::move(reference)});
  }
  return cases;
}

// ---- The calibrations

template <class T>
Calibration<Judged, T> layer_calibration(const char* name, bool long_sums) {
  Calibration<Judged, T> c;
  c.name = name;
  c.random = judged_cases<T>(long_sums);
  c.want = [](const Judged& j) { return j.reference.out; };
  c.reading = reading_of<T>;
  return c;
}

template <class T, class Change>
Variant<Judged, T> variant(const std::string& what, Change change) {
  Fp8LayerWay way;
  if (sizeof(T) == 2) way.y = as_bf16;
  change(way);
  return {what, layer<T>(way)};
}

// Right kernels whose sums differ.
template <class T>
std::vector<Variant<Judged, T>> by_sums() {
  return {variant<T>("fp32 sums", [](auto& /*way*/) {}),
          variant<T>("14 bits, promoted every 128", [](auto& w) { w.sum = hopper_sum; }),
          variant<T>("the solution on the emulator", [](auto& w) {
            w.sum = emulated_sum;
            w.swiglu = silu_shared;
            w.by_reciprocal = true;
          })};
}

template <class T>
std::vector<Variant<Judged, T>> right_ways() {
  auto ways = by_sums<T>();
  for (const Order order : {Order::kBackward, Order::kTree, Order::kTiles}) {
    ways.push_back(variant<T>(name_of(order), [order](auto& w) { w.sum = in_fp32(order); }));
  }
  ways.push_back(variant<T>("blocks backward", [](auto& w) { w.blocks_backward = true; }));
  ways.push_back(
      variant<T>("the weight in GEMM2's epilogue", [](auto& w) { w.weight_in_gemm2 = true; }));
  if (sizeof(T) == 2) {
    ways.push_back(variant<T>("y in fp32", [](auto& w) { w.y = as_float; }));
  }
  return ways;
}

// Not here, since they are hardly above the gates: weights or scales of h rounded to bf16.
template <class T>
std::vector<Variant<Judged, T>> mistakes() {
  std::vector<Variant<Judged, T>> wrong;
  const auto add = [&](const char* what, auto change) {
    Fp8LayerMistake mistake;
    change(mistake);
    wrong.push_back({what, mistaken<T>(mistake)});
  };
  add("scales of x up to powers of two", [](auto& m) { m.x_power_of_two = true; });
  add("the last 32 of 128 missing", [](auto& m) { m.last_step_missing = true; });
  add("the weight twice", [](auto& m) { m.weight = 2; });
  add("amax of two lanes", [](auto& m) { m.amax_lanes = 2; });
  return wrong;
}

template <class T>
void calibrate_layer(const char* name) {
  auto c = layer_calibration<T>(name, false);
  c.right = right_ways<T>();
  c.wrong = mistakes<T>();
  // In bf16 these are less than the rounding of y, or little more. The code is the same.
  if (sizeof(T) == 4) {
    c.wrong.push_back(
        variant<T>("h rounded to bf16 before its codes", [](auto& w) { w.h = as_bf16; }));
    c.wrong.push_back(
        variant<T>("scales of W rounded to bf16", [](auto& w) { w.w_scale = as_bf16; }));
  }
  calibrate(c);
}

TEST(Calibration, Fp8LayerBf16) {
  calibrate_layer<Bf16>("m10 layer, bf16");
}

TEST(Calibration, Fp8LayerFp32) {
  calibrate_layer<Fp32>("m10 layer, fp32");
}

// Promotion has cases of its own: in others scales that differ between blocks show its lack, too,
// but a kernel that doesn't promote may put them elsewhere.
TEST(Calibration, Fp8LayerLongSums) {
  auto c = layer_calibration<Fp32>("m10 long, fp32", true);
  c.right = by_sums<Fp32>();
  const auto never = [](BlockSum sum) {
    return [sum](Fp8LayerWay& w) { w.sum = sum, w.promoted = false; };
  };
  c.wrong = {variant<Fp32>("no promotion, 14 bits", never(hopper_sum)),
             variant<Fp32>("no promotion, the emulator", never(emulated_sum)),
             variant<Fp32>("y rounded to bf16", [](Fp8LayerWay& w) { w.y = as_bf16; })};
  calibrate(c);
}

}  // namespace
}  // namespace moe::judge
