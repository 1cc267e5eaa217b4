// 2 x the worst right kernel <= gate <= half of the mildest mistake, for every stage and type of
// output, on the data of the suite's own cases. The emulator adds in one order only, so right
// kernels are simulated here in the orders of GPUs (gpu_sums.h). Here: m1, m2 and m3.
#include <cmath>

#include "../m1_align_oracle.h"
#include "../m2_grouped_gemm_cases.h"
#include "../m3_weighted_epilogue_cases.h"
#include "calibrated_sums.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using oracle::CombineProblem;
using oracle::GemmProblem;
using oracle::SiluProblem;
using oracle::WeightedProblem;

// ---- m2

TEST(Calibration, GroupedGemm) {
  Calibration<GemmProblem, Bf16> c;
  c.name = "m2 GEMM, bf16";
  c.want = [](const GemmProblem& p) { return oracle::grouped_gemm(p); };
  c.judged = routed_ids;
  add_cases(m2_cases::kCases, m2_cases::make_problem, c);
  const auto with = [](Sum sum) {
    return [sum](const GemmProblem& p) { return stored(gemm_sums(p, sum)); };
  };
  for (const Order order : kOrders) c.right.push_back({name_of(order), with(in_order(order))});
  c.wrong = {
      {"bf16 accumulator, rounded every 16 of D", with(rounded_each(16))},
      {"bf16 accumulator, rounded every 32 of D", with(rounded_each(32))},
      {"bf16 accumulator, rounded every 64 of D", with(rounded_each(64))},
      {"the last 16 of D missing", with(without_last(16))},
      {"the last term missing", with(without_last(1))},
      {"stored by cutting off",
       [](const GemmProblem& p) {
         std::vector<Bf16> out;
         for (const double v : gemm_sums(p, without_last(0))) out.push_back(truncated_bf16(v));
         return out;
       }},
  };
  calibrate(c);
}

// ---- m3

double sigmoid_in_bf16(double gate, double up) {
  return gate * as_bf16(1.0 / (1.0 + std::exp(-gate))) * up;
}

TEST(Calibration, SiluAndMul) {
  Calibration<SiluProblem, Bf16> c;
  c.name = "m3 SwiGLU, bf16";
  c.want = oracle::silu_and_mul;
  c.judged = [](const SiluProblem& p) {
    return std::vector<uint8_t>(static_cast<size_t>(p.num_ids), 1);
  };
  for (const m3_cases::SiluCase& one : m3_cases::kSiluCases) {
    if (one.refused || one.num_ids == 0 || one.gates == m3_cases::Gates::kTable) continue;
    const SiluProblem p = m3_cases::make_silu(one, 1);
    (p.exact ? c.exact : c.random).push_back(p);
  }
  const auto with = [](SiluFormula formula) {
    return [formula](const SiluProblem& p) {
      std::vector<Bf16> h;
      for (int row = 0; row < p.num_ids; ++row) {
        for (int i = 0; i < p.intermediate_size; ++i) {
          h.push_back(to_bf16(formula(p.value(row, i), p.value(row, i + p.intermediate_size))));
        }
      }
      return h;
    };
  };
  c.right = {{"fp32", with(silu_in_fp32)}, {"fast exp and division", with(silu_fast)}};
  c.wrong = {{"silu(gate) rounded to bf16", with(silu_in_bf16)},
             {"sigmoid rounded to bf16", with(sigmoid_in_bf16)}};
  calibrate(c);
}

// The epilogue of a weighted GEMM on finished sums.
std::vector<Bf16> weighted(const WeightedProblem& p,
                           const Sum& sum,
                           double (*apply)(double sum, double weight)) {
  std::vector<double> values = gemm_sums(p.gemm, sum);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t flat_id = i / static_cast<size_t>(p.gemm.n);
    if (!p.gemm.routed(static_cast<int>(flat_id))) continue;
    values[i] = apply(values[i], static_cast<double>(p.topk_weights[flat_id]));
  }
  return stored(values);
}

double weight_in_fp32(double sum, double weight) {
  return as_float(sum * weight);
}

TEST(Calibration, WeightedGemm) {
  Calibration<WeightedProblem, Bf16> c;
  c.name = "m3 weighted, bf16";
  c.want = oracle::grouped_gemm_weighted;
  c.judged = [](const WeightedProblem& p) { return routed_ids(p.gemm); };
  add_cases(m3_cases::kWeightedCases, m3_cases::make_weighted, c);
  const auto with = [](Sum sum, double (*apply)(double, double)) {
    return [sum, apply](const WeightedProblem& p) { return weighted(p, sum, apply); };
  };
  for (const Order order : kOrders) {
    c.right.push_back({name_of(order), with(in_order(order), weight_in_fp32)});
  }
  const Sum right = without_last(0);
  c.wrong = {
      {"bf16 accumulator, rounded every 32 of D", with(rounded_each(32), weight_in_fp32)},
      {"the last term missing", with(without_last(1), weight_in_fp32)},
      {"rounded to bf16 before the weight",
       with(right, [](double sum, double weight) { return as_bf16(sum) * weight; })},
      {"weight rounded to bf16",
       with(right, [](double sum, double weight) { return sum * as_bf16(weight); })},
  };
  calibrate(c);
}

std::vector<Bf16> combined(const CombineProblem& p, const Sum& sum) {
  std::vector<double> values;
  for (int token = 0; token < p.num_tokens; ++token) {
    for (int column = 0; column < p.hidden_size; ++column) {
      std::vector<double> terms;
      for (int id = token * p.top_k; id < (token + 1) * p.top_k; ++id) {
        if (p.routed(id)) terms.push_back(p.value(id, column));
      }
      values.push_back(sum(terms));
    }
  }
  return stored(values);
}

TEST(Calibration, Combine) {
  Calibration<CombineProblem, Bf16> c;
  c.name = "m3 combine, bf16";
  c.want = oracle::combine;
  c.judged = [](const CombineProblem& p) {
    return std::vector<uint8_t>(static_cast<size_t>(p.num_tokens), 1);
  };
  add_cases(m3_cases::kCombineCases, m3_cases::make_combine, c);
  const auto with = [](Sum sum) {
    return [sum](const CombineProblem& p) { return combined(p, sum); };
  };
  for (const Order order : {Order::kForward, Order::kBackward, Order::kTree}) {
    c.right.push_back({name_of(order), with(in_order(order))});
  }
  c.wrong = {{"running sum in bf16", with(rounded_each(1))},
             {"the last slot missing", with(without_last(1))}};
  calibrate(c);
}

// ---- m1: weights of a softmax

TEST(Calibration, RoutingWeights) {
  Random random(7);
  constexpr int kTokens = 60;
  double worst_right = 0.0;
  double fp16_weights = 0.0;
  for (const int num_experts : {8, 60, 128, 1024}) {
    std::vector<float> logits;
    for (int i = 0; i < kTokens * num_experts; ++i) {
      logits.push_back(static_cast<float>(2.0 * random.normal()));
    }
    const int top_k = 8;
    for (const bool renormalize : {false, true}) {
      const auto want = oracle::route(logits, kTokens, num_experts, top_k, renormalize);
      for (size_t i = 0; i < want.topk_ids.size(); ++i) {
        const size_t first = i / static_cast<size_t>(top_k) * static_cast<size_t>(num_experts);
        const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(first);
        const float largest = *std::max_element(begin, begin + num_experts);
        std::vector<double> terms;
        for (int e = 0; e < num_experts; ++e) {
          // __expf: two ulps and more, growing with the argument.
          const float argument = begin[e] - largest;
          const float error = 1.0f + (2.0f - argument) * 0x1p-23f;
          terms.push_back(static_cast<double>(std::exp(argument) * error));
        }
        std::vector<double> chosen;
        const size_t row = i / static_cast<size_t>(top_k) * static_cast<size_t>(top_k);
        for (size_t slot = 0; slot < static_cast<size_t>(top_k); ++slot) {
          chosen.push_back(terms[static_cast<size_t>(want.topk_ids[row + slot])]);
        }
        const double numerator = terms[static_cast<size_t>(want.topk_ids[i])];
        for (const Order order : {Order::kForward, Order::kBackward, Order::kTree}) {
          const double sum = sum_in_order(renormalize ? chosen : terms, order);
          const double got = as_float(numerator / sum);
          worst_right =
              std::max(worst_right, std::fabs(got - want.topk_weights[i]) / want.topk_weights[i]);
        }
        const double in_fp16 = std::ldexp(
            std::nearbyint(std::ldexp(want.topk_weights[i], 10 - std::ilogb(want.topk_weights[i]))),
            std::ilogb(want.topk_weights[i]) - 10);
        fp16_weights = std::max(fp16_weights,
                                std::fabs(in_fp16 - want.topk_weights[i]) / want.topk_weights[i]);
      }
    }
  }
  std::printf("  m1 weights         right, the worst %.3g, rounded to fp16 %.3g, gate %.3g\n",
              worst_right, fp16_weights, oracle::kWeightGate);
  EXPECT_LE(kFactor * worst_right, oracle::kWeightGate);
  EXPECT_GE(fp16_weights, kFactor * oracle::kWeightGate);
}

}  // namespace
}  // namespace moe::judge
