// The gates of m5's GEMM (calibration_test.cpp says what is checked).
#include <algorithm>

#include "../m5_block_fp8_cases.h"
#include "../m5_block_fp8_judge.h"
#include "calibrated_sums.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using oracle::Fp8GemmProblem;

struct Fp8Way {
  int bits = 0;  // of the tensor core; 0: fp32 sums in `order`
  Order order = Order::kForward;
  bool blocks_backward = false;
  double (*a_scale)(double) = as_float;
  double (*w_scale)(double) = as_float;
  double (*total)(double) = as_float;  // what the running sum goes through
  double (*stored)(double) = as_float;
  size_t missing = 0;  // last terms of D
};

double fp8_value(const Fp8GemmProblem& p, int flat_id, int column, const Fp8Way& way) {
  const auto depth = static_cast<size_t>(p.depth);
  const size_t a = static_cast<size_t>(p.row_of(flat_id)) * depth;
  const size_t w = (static_cast<size_t>(p.expert_of(flat_id)) * static_cast<size_t>(p.n) +
                    static_cast<size_t>(column)) *
                   depth;
  double total = 0.0;
  for (int turn = 0; turn < p.k_blocks(); ++turn) {
    const int block = way.blocks_backward ? p.k_blocks() - 1 - turn : turn;
    const size_t first = static_cast<size_t>(block) * 128;
    std::vector<double> products;
    for (size_t d = first; d < std::min(first + 128, depth - way.missing); ++d) {
      products.push_back(from_e4m3(p.a_codes[a + d]) * from_e4m3(p.w_codes[w + d]));
    }
    const double partial =
        way.bits > 0 ? truncated_sum(products, way.bits, 32) : sum_in_order(products, way.order);
    const double a_scale =
        oracle::a_scale_at(p, oracle::a_scale_index(p, p.row_of(flat_id), block));
    const double w_scale =
        oracle::w_scale_at(p, oracle::w_scale_index(p, p.expert_of(flat_id), column, block));
    const double scale = as_float(way.a_scale(a_scale) * way.w_scale(w_scale));
    total = way.total(as_float(total + partial * scale));
  }
  const double weight = p.topk_weights.empty()
                            ? 1.0
                            : static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)]);
  return way.stored(as_float(total * weight));
}

template <class T>
std::function<std::vector<T>(const Fp8GemmProblem&)> fp8_gemm(Fp8Way way) {
  return [way](const Fp8GemmProblem& p) {
    std::vector<T> out;
    for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
      for (int column = 0; column < p.n; ++column) {
        const double value = p.routed(flat_id) ? fp8_value(p, flat_id, column, way) : 0.0;
        if constexpr (sizeof(T) == 2) out.push_back(to_bf16(value));
        if constexpr (sizeof(T) == 4) out.push_back(to_fp32(value));
      }
    }
    return out;
  };
}

double up_to_power(double scale) {
  return static_cast<double>(oracle::power_of_two_at_least(static_cast<float>(scale)));
}

template <class T>
void calibrate_fp8(const char* name, const Gates& gates) {
  Calibration<Fp8GemmProblem, T> c;
  c.name = name;
  c.gates = gates;
  c.want = oracle::grouped_gemm_fp8;
  c.judged = judged_rows;
  for (const m5_cases::GemmCase& one : m5_cases::kCases) {
    const bool of_type = (one.out == m5_cases::Out::kFp32) == (sizeof(T) == 4);
    if (one.refused || !of_type || one.num_tokens == 0 || one.data == m5_cases::Data::kNan)
      continue;
    const Fp8GemmProblem p = m5_cases::make_problem(one, mix(1, one.name));
    (p.exact ? c.exact : c.random).push_back(p);
  }
  for (const Order order : kOrders) c.right.push_back({name_of(order), fp8_gemm<T>({0, order})});
  Fp8Way way;
  way.blocks_backward = true;
  c.right.push_back({"blocks of D backward", fp8_gemm<T>(way)});
  c.right.push_back({"14 bits, promoted every 128", fp8_gemm<T>({kBitsOfE4m3})});
  const auto wrong = [&](const char* what, auto change, bool only_exact = false) {
    Fp8Way changed;
    change(changed);
    c.wrong.push_back({what, fp8_gemm<T>(changed), only_exact});
  };
  wrong("running sum in bf16", [](Fp8Way& w) { w.total = as_bf16; });
  wrong("A scales rounded to bf16", [](Fp8Way& w) { w.a_scale = as_bf16; });
  wrong("W scales rounded to bf16", [](Fp8Way& w) { w.w_scale = as_bf16; });
  wrong("A scales up to powers of two", [](Fp8Way& w) { w.a_scale = up_to_power; });
  wrong("the last 16 of D missing", [](Fp8Way& w) { w.missing = 16; });
  if (sizeof(T) == 4) wrong("stored rounded to bf16", [](Fp8Way& w) { w.stored = as_bf16; });
  calibrate(c);
}

TEST(Calibration, BlockFp8Bf16) {
  calibrate_fp8<Bf16>("m5 GEMM, bf16", Gates{});
}

TEST(Calibration, BlockFp8Fp32) {
  calibrate_fp8<Fp32>("m5 GEMM, fp32", kFp32Gates);
}

}  // namespace
}  // namespace moe::judge
