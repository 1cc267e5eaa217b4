// The gates of m4 and of the layer (calibration_test.cpp says what is checked).
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "../layer_cases.h"
#include "../m1_align_oracle.h"
#include "../m4_group_m_cases.h"
#include "../m8_persistent_cases.h"
#include "calibrated_layer.h"
#include "calibrated_sums.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using oracle::EpilogueProblem;

// ---- m4: m2's sums with an epilogue in the same kernel

struct Epilogue {
  Sum sum;
  SiluFormula swiglu = silu_in_fp32;
  double (*before)(double) = as_float;  // what the sums go through before the epilogue
};

std::vector<Bf16> with_epilogue(const EpilogueProblem& p, const Epilogue& e) {
  const std::vector<double> sums = gemm_sums(p.gemm, e.sum);
  const auto columns = static_cast<size_t>(p.columns());
  std::vector<double> values;
  for (size_t flat_id = 0; flat_id < static_cast<size_t>(p.gemm.num_ids()); ++flat_id) {
    for (size_t column = 0; column < columns; ++column) {
      const size_t place = flat_id * static_cast<size_t>(p.gemm.n) + column;
      double value = e.before(sums[place]);
      if (p.swiglu) value = e.swiglu(value, e.before(sums[place + columns]));
      if (!p.topk_weights.empty()) {
        value = as_float(value * static_cast<double>(p.topk_weights[flat_id]));
      }
      values.push_back(value);
    }
  }
  return stored(values);
}

TEST(Calibration, GemmWithEpilogue) {
  Calibration<EpilogueProblem, Bf16> c;
  c.name = "m4 GEMM, bf16";
  c.want = [](const EpilogueProblem& p) { return oracle::grouped_gemm(p); };
  c.judged = [](const EpilogueProblem& p) { return routed_ids(p.gemm); };
  add_cases(m4_cases::kGemmCases, m4_cases::make_problem, c);
  const auto with = [](Epilogue e) {
    return [e](const EpilogueProblem& p) { return with_epilogue(p, e); };
  };
  for (const Order order : kOrders) c.right.push_back({name_of(order), with({in_order(order)})});
  c.right.push_back({"fast exp and division", with({in_order(Order::kTiles), silu_fast})});
  c.wrong = {
      {"bf16 accumulator, rounded every 32 of D", with({rounded_each(32)})},
      {"the last term missing", with({without_last(1)})},
      {"rounded to bf16 before the epilogue", with({without_last(0), silu_in_fp32, as_bf16})},
      {"silu(gate) rounded to bf16", with({without_last(0), silu_in_bf16})},
  };
  calibrate(c);
}

// ---- the layer of m3, m4 and m8

struct LayerWay {
  Order order;
  bool round_gate_up;              // m3 stores it; m4's GEMM1 applies SwiGLU to fp32 sums
  bool weight_in_combine = false;  // m8: y is rounded before its weight
};

// One row of a product with an expert's matrix, in fp32.
double row_dot(const std::vector<double>& input,
               const std::vector<Bf16>& matrix,
               size_t row,
               Order order) {
  std::vector<double> products(input.size());
  for (size_t d = 0; d < input.size(); ++d) {
    products[d] = input[d] * static_cast<double>(to_float(matrix[row * input.size() + d]));
  }
  return sum_in_order(products, order);
}

std::vector<Bf16> layer_output(const oracle::LayerProblem& p, const LayerWay& way) {
  const auto routing = oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
  const auto hidden = static_cast<size_t>(p.hidden_size);
  const auto inner = static_cast<size_t>(p.intermediate_size);
  std::vector<Bf16> out;
  for (size_t token = 0; token < static_cast<size_t>(p.num_tokens); ++token) {
    std::vector<double> x(hidden);
    for (size_t d = 0; d < hidden; ++d) {
      x[d] = static_cast<double>(to_float(p.x[token * hidden + d]));
    }
    std::vector<std::vector<double>> y(hidden);  // [column][slot]
    for (size_t slot = 0; slot < static_cast<size_t>(p.top_k); ++slot) {
      const size_t id = token * static_cast<size_t>(p.top_k) + slot;
      const auto expert = static_cast<size_t>(routing.topk_ids[id]);
      const double weight = as_float(routing.topk_weights[id]);
      std::vector<double> h(inner);
      for (size_t i = 0; i < inner; ++i) {
        double gate = row_dot(x, p.w13, expert * 2 * inner + i, way.order);
        double up = row_dot(x, p.w13, (expert * 2 + 1) * inner + i, way.order);
        if (way.round_gate_up) gate = as_bf16(gate), up = as_bf16(up);
        h[i] = as_bf16(silu_in_fp32(gate, up));
      }
      for (size_t d = 0; d < hidden; ++d) {
        const double sum = row_dot(h, p.w2, expert * hidden + d, way.order);
        y[d].push_back(way.weight_in_combine ? as_float(weight * as_bf16(sum))
                                             : as_bf16(as_float(sum * weight)));
      }
    }
    for (size_t d = 0; d < hidden; ++d) out.push_back(to_bf16(sum_in_order(y[d], Order::kForward)));
  }
  return out;
}

using oracle::LayerProblem;

std::function<std::vector<Bf16>(const LayerProblem&)> layer_with(LayerWay way) {
  return [way](const LayerProblem& p) { return layer_output(p, way); };
}

TEST(Calibration, Layer) {
  auto c = layer_calibration("layer, bf16");
  for (const char* group : {"tiny", "edge", "random"}) {
    for (const LayerCase& one : layer_cases_of(group)) {
      if (one.num_tokens == 0 || one.num_tokens > 40) continue;
      const LayerProblem p = make_layer(one, mix(1, one.name));
      (p.exact ? c.exact : c.random).push_back(p);
    }
  }
  for (const Order order : {Order::kForward, Order::kTiles, Order::kTruncated}) {
    c.right.push_back(
        {std::string(name_of(order)) + ", gate_up in bf16", layer_with({order, true})});
    c.right.push_back(
        {std::string(name_of(order)) + ", gate_up in fp32", layer_with({order, false})});
  }
  calibrate(c);
}

// m8 rounds y before the weight, and judges exact data with the gates too. Of its cases those that
// take no time here, which have the layer's data, too.
TEST(Calibration, PersistentLayer) {
  auto c = layer_calibration("m8 layer, bf16");
  std::vector<LayerCase> cases(std::begin(m8_cases::kCases), std::end(m8_cases::kCases));
  for (const char* group : {"tiny", "edge", "random"}) {
    for (const LayerCase& one : layer_cases_of(group)) cases.push_back(one);
  }
  for (const LayerCase& one : cases) {
    const int64_t products =
        int64_t{one.num_tokens} * one.top_k * one.hidden_size * one.intermediate_size;
    if (products == 0 || products > 400'000 || one.num_experts > 100) continue;
    c.random.push_back(make_layer(one, mix(1, one.name)));
  }
  for (const Order order : {Order::kForward, Order::kTruncated}) {
    c.right.push_back(
        {std::string(name_of(order)) + ", y before its weight", layer_with({order, false, true})});
  }
  calibrate(c);
}

}  // namespace
}  // namespace moe::judge
