// m6 and m7 are judged with the gates of m2's and m4's bf16 outputs; their own data must allow it
// (calibration_test.cpp says what is checked).
#include "../m6_wgmma_cases.h"
#include "../m7_warp_specialized_cases.h"
#include "calibrated_sums.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using oracle::GemmProblem;
using oracle::SortedProblem;

// wgmma adds 16 terms to the accumulator at a time; a turn has 64.
constexpr Order kWgmmaOrders[] = {Order::kForward, Order::kTiles, Order::kTruncated};
constexpr size_t kTurn = 64;

// ---- m6

TEST(Calibration, Wgmma) {
  Calibration<GemmProblem, Bf16> c;
  c.name = "m6 GEMM, bf16";
  c.want = [](const GemmProblem& p) { return oracle::grouped_gemm(p); };
  c.judged = routed_ids;
  add_cases(m2_cases::kWgmmaCases, m2_cases::make_problem, c);
  const auto with = [](Sum sum) {
    return [sum](const GemmProblem& p) { return stored(gemm_sums(p, sum)); };
  };
  for (const Order order : kWgmmaOrders) {
    c.right.push_back({name_of(order), with(in_order(order))});
  }
  c.wrong = {
      {"bf16 accumulator, rounded every turn", with(rounded_each(kTurn))},
      {"the last term missing", with(without_last(1))},
  };
  calibrate(c);
}

// ---- m7

struct SortedWay {
  Sum sum;
  SiluFormula swiglu = silu_shared;
  double (*before)(double) = as_float;  // what the sums go through before the epilogue
  double (*weight)(double) = as_float;
};

std::vector<Bf16> sorted_output(const SortedProblem& p, const SortedWay& way) {
  const auto depth = static_cast<size_t>(p.depth());
  std::vector<double> products(depth);
  const oracle::SumOf sum = [&](int row, int row_of_w) {
    const Bf16* a = p.a.data() + static_cast<size_t>(p.row_of_a(row)) * depth;
    const int64_t w_row = int64_t{p.expert_of(row)} * p.rows_of_w() + row_of_w;
    const Bf16* w = p.w.data() + static_cast<size_t>(w_row) * depth;
    for (size_t d = 0; d < depth; ++d) {
      products[d] = static_cast<double>(to_float(a[d])) * static_cast<double>(to_float(w[d]));
    }
    return way.before(way.sum(products));
  };
  const oracle::Epilogue epilogue = [&](int row, double value, double up) {
    if (p.is_gemm1) return way.swiglu(value, up);
    const float weight = p.topk_weights[static_cast<size_t>(p.flat_id(row))];
    return as_float(value * way.weight(static_cast<double>(weight)));
  };
  return stored(oracle::sorted_gemm(p, sum, epilogue).values);
}

void calibrate_sorted(bool is_gemm1) {
  Calibration<SortedProblem, Bf16> c;
  c.name = is_gemm1 ? "m7 GEMM1, bf16" : "m7 GEMM2, bf16";
  c.want = [](const SortedProblem& p) { return oracle::sorted_gemm(p); };
  c.judged = [](const SortedProblem& p) {
    std::vector<uint8_t> real;
    for (int row = 0; row < p.capacity(); ++row) real.push_back(p.is_real(row) ? 1 : 0);
    return real;
  };
  for (const m7_cases::GemmCase& one : m7_cases::kGemmCases) {
    const bool is_small = one.num_tokens > 0 && one.twist != m7_cases::Twist::kGpuOnly;
    const bool is_legal = one.twist != m7_cases::Twist::kRefused;
    if (one.is_gemm1 != is_gemm1 || !is_small || !is_legal) continue;
    SortedProblem p = m7_cases::make_problem(one, mix(1, one.name));
    (p.exact ? c.exact : c.random).push_back(std::move(p));
  }
  const auto with = [](SortedWay way) {
    return [way](const SortedProblem& p) { return sorted_output(p, way); };
  };
  for (const Order order : kWgmmaOrders) {
    c.right.push_back({name_of(order), with({in_order(order)})});
  }
  c.wrong = {
      {"bf16 accumulator, rounded every turn", with({rounded_each(kTurn)})},
      {"the last term missing", with({without_last(1)})},
      {"rounded to bf16 before the epilogue", with({without_last(0), silu_shared, as_bf16})},
  };
  if (is_gemm1) {
    c.wrong.push_back({"silu(gate) rounded to bf16", with({without_last(0), silu_in_bf16})});
  } else {
    c.wrong.push_back(
        {"weight rounded to bf16", with({without_last(0), silu_shared, as_float, as_bf16})});
  }
  calibrate(c);
}

TEST(Calibration, SortedGemm1) {
  calibrate_sorted(true);
}

TEST(Calibration, SortedGemm2) {
  calibrate_sorted(false);
}

}  // namespace
}  // namespace moe::judge
