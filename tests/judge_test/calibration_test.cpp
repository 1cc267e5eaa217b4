// 2 x the worst right kernel <= gate <= half of the mildest mistake, for every stage and type of
// output, on the data of the suite's own cases. The emulator adds in one order only, so right
// kernels are simulated here in the orders of GPUs (gpu_sums.h).
#include "calibration.h"

#include <cmath>
#include <limits>

#include "../layer_cases.h"
#include "../m1_align_oracle.h"
#include "../m2_grouped_gemm_cases.h"
#include "../m3_weighted_epilogue_cases.h"
#include "../m4_group_m_cases.h"
#include "../m5_block_fp8_cases.h"
#include "../m5_block_fp8_judge.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using oracle::CombineProblem;
using oracle::EpilogueProblem;
using oracle::Fp8GemmProblem;
using oracle::GemmProblem;
using oracle::SiluProblem;
using oracle::WeightedProblem;

constexpr uint64_t kSeeds[] = {1, 2};

const char* name_of(Order order) {
  constexpr const char* kNames[] = {"forward",       "backward",          "tree",
                                    "four partials", "tensor core tiles", "truncating tensor core"};
  return kNames[static_cast<int>(order)];
}

double as_bf16(double value) {
  return static_cast<double>(to_float(to_bf16(value)));
}

double as_float(double value) {
  return static_cast<double>(static_cast<float>(value));
}

// Stored without rounding: the lower half of an fp32 value dropped.
Bf16 truncated_bf16(double value) {
  return static_cast<Bf16>(to_fp32(value) >> 16);
}

// ---- Sums of m2's GEMM, which m3 and m4 share

using Sum = std::function<double(const std::vector<double>& products)>;

Sum in_order(Order order) {
  return [order](const std::vector<double>& products) { return sum_in_order(products, order); };
}

// The accumulator rounded to bf16 after every `step` terms.
Sum rounded_each(size_t step) {
  return [step](const std::vector<double>& products) {
    double sum = 0.0;
    for (size_t i = 0; i < products.size(); ++i) {
      sum += products[i];
      if ((i + 1) % step == 0) sum = as_bf16(sum);
    }
    return sum;
  };
}

// The last `count` terms missing.
Sum without_last(size_t count) {
  return [count](const std::vector<double>& products) {
    double sum = 0.0;
    for (size_t i = 0; i + count < products.size(); ++i) sum += products[i];
    return sum;
  };
}

// All sums of a GEMM, before any epilogue; 0 where not routed.
std::vector<double> gemm_sums(const GemmProblem& p, const Sum& sum) {
  const auto depth = static_cast<size_t>(p.depth);
  const auto n = static_cast<size_t>(p.n);
  std::vector<double> sums;
  std::vector<double> products(depth);
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    const auto row = static_cast<size_t>(p.rows_are_slots ? flat_id : flat_id / p.top_k);
    for (size_t column = 0; column < n; ++column) {
      if (!p.routed(flat_id)) {
        sums.push_back(0.0);
        continue;
      }
      const auto expert = static_cast<size_t>(p.topk_ids[static_cast<size_t>(flat_id)]);
      const size_t w = (expert * n + column) * depth;
      for (size_t d = 0; d < depth; ++d) {
        products[d] = static_cast<double>(to_float(p.a[row * depth + d])) *
                      static_cast<double>(to_float(p.w[w + d]));
      }
      sums.push_back(sum(products));
    }
  }
  return sums;
}

std::vector<Bf16> stored(const std::vector<double>& values) {
  std::vector<Bf16> out;
  for (const double value : values) out.push_back(to_bf16(value));
  return out;
}

std::vector<uint8_t> routed_ids(const GemmProblem& p) {
  std::vector<uint8_t> routed;
  for (int id = 0; id < p.num_ids(); ++id) routed.push_back(p.routed(id) ? 1 : 0);
  return routed;
}

// Adds the problems of a suite's cases to `c`, each with some seeds.
template <class Case, size_t N, class Make, class Problem, class T>
void add_cases(const Case (&cases)[N], Make make, Calibration<Problem, T>& c) {
  for (const Case& one : cases) {
    if (one.refused) continue;
    for (const uint64_t seed : kSeeds) {
      Problem p = make(one, mix(seed, one.name));
      const size_t size = c.want(p).values.size();
      if (size == 0) break;
      bool exact = false;
      if constexpr (requires { p.gemm.exact; }) {
        exact = p.gemm.exact;
      } else {
        exact = p.exact;
      }
      (exact ? c.exact : c.random).push_back(std::move(p));
      if (exact || size > 5000) break;
    }
  }
}

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

using SiluFormula = double (*)(double gate, double up);

// fp32 as written in the solution, and with the fast functions' error of a few ulps.
double silu_in_fp32(double gate, double up) {
  const auto g = static_cast<float>(gate);
  return static_cast<double>(g / (1.0f + std::exp(-g)) * static_cast<float>(up));
}
double silu_fast(double gate, double up) {
  const auto g = static_cast<float>(gate);
  const float sum = 1.0f + std::exp(-g) * (1.0f + 0x1p-21f);
  const float reciprocal = sum == 1.0f ? 1.0f : 1.0f / sum * (1.0f - 0x1p-22f);
  return static_cast<double>(g * reciprocal * static_cast<float>(up));
}
double sigmoid_in_bf16(double gate, double up) {
  return gate * as_bf16(1.0 / (1.0 + std::exp(-gate))) * up;
}
double silu_in_bf16(double gate, double up) {
  return as_bf16(oracle::silu(gate)) * up;
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

// ---- the layer of m3 and m4

struct LayerWay {
  Order order;
  bool round_gate_up;  // m3 stores it; m4's GEMM1 applies SwiGLU to fp32 sums
  bool weight_in_bf16 = false;
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
      const double exact_weight = routing.topk_weights[id];
      const double weight = way.weight_in_bf16 ? as_bf16(exact_weight) : as_float(exact_weight);
      std::vector<double> h(inner);
      for (size_t i = 0; i < inner; ++i) {
        double gate = row_dot(x, p.w13, expert * 2 * inner + i, way.order);
        double up = row_dot(x, p.w13, (expert * 2 + 1) * inner + i, way.order);
        if (way.round_gate_up) gate = as_bf16(gate), up = as_bf16(up);
        h[i] = as_bf16(silu_in_fp32(gate, up));
      }
      for (size_t d = 0; d < hidden; ++d) {
        const double sum = row_dot(h, p.w2, expert * hidden + d, way.order);
        y[d].push_back(as_bf16(as_float(sum * weight)));
      }
    }
    for (size_t d = 0; d < hidden; ++d) out.push_back(to_bf16(sum_in_order(y[d], Order::kForward)));
  }
  return out;
}

TEST(Calibration, Layer) {
  using oracle::LayerMistake;
  using oracle::LayerProblem;
  Calibration<LayerProblem, Bf16> c;
  c.name = "layer, bf16";
  c.gates = kLayerGates;
  c.want = [](const LayerProblem& p) { return oracle::moe_layer(p); };
  c.judged = [](const LayerProblem& p) {
    return std::vector<uint8_t>(static_cast<size_t>(p.num_tokens), 1);
  };
  for (const char* group : {"tiny", "edge", "random"}) {
    for (const LayerCase& one : layer_cases_of(group)) {
      if (one.num_tokens == 0 || one.num_tokens > 40) continue;
      const LayerProblem p = make_layer(one, mix(1, one.name));
      (p.exact ? c.exact : c.random).push_back(p);
    }
  }
  const auto with = [](LayerWay way) {
    return [way](const LayerProblem& p) { return layer_output(p, way); };
  };
  for (const Order order : {Order::kForward, Order::kTiles, Order::kTruncated}) {
    c.right.push_back({std::string(name_of(order)) + ", gate_up in bf16", with({order, true})});
    c.right.push_back({std::string(name_of(order)) + ", gate_up in fp32", with({order, false})});
  }
  // Mistakes of the layer itself, which is the order of the steps: the steps' own precision is
  // calibrated above.
  const auto mistaken = [](auto change) {
    LayerMistake mistake;
    change(mistake);
    return
        [mistake](const LayerProblem& p) { return stored(oracle::moe_layer(p, mistake).values); };
  };
  c.wrong = {
      {"the weight inside SiLU", mistaken([](LayerMistake& m) {
         m.weight_in_gemm1 = true;
         m.weight_in_gemm2 = false;
       })},
      {"the weight twice", mistaken([](LayerMistake& m) { m.weight_in_gemm1 = true; })},
      {"no weight", mistaken([](LayerMistake& m) { m.weight_in_gemm2 = false; })},
      {"renormalised or not", mistaken([](LayerMistake& m) { m.flip_renormalize = true; })},
  };
  calibrate(c);
}

// ---- m5

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
