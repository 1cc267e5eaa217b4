#include "m10_fp8_hopper_oracle.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "m1_align_oracle.h"
#include "m3_weighted_epilogue_oracle.h"
#include "m5_block_fp8_oracle.h"

namespace moe::oracle {
namespace {

constexpr int kBlock = 128;

double value_of(judge::Fp8 code) {
  static const std::array<double, 256> values = [] {
    std::array<double, 256> table{};
    for (size_t i = 0; i < 256; ++i) table[i] = judge::from_e4m3(static_cast<judge::Fp8>(i));
    return table;
  }();
  return values[code];
}

// One row of A: its values without the scales, and the scales.
struct Row {
  std::vector<double> codes;
  std::vector<double> scales;
};

// A matrix of weights [E, n, depth].
struct Weights {
  const Coded& coded;
  int n;
  int depth;
};

class Fp8Layer {
 public:
  Fp8Layer(const Fp8LayerProblem& p, const Fp8LayerMistake& mistake)
      : p_(p),
        mistake_(mistake),
        routing_(route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize)),
        w13_{p.w13, 2 * p.intermediate_size, p.hidden_size},
        w2_{p.w2, p.hidden_size, p.intermediate_size} {
    x_ = quantize({p.num_tokens, 1, p.hidden_size, false, p.x});
  }

  judge::Matrix out() const {
    judge::Matrix out = {p_.num_tokens, p_.hidden_size, {}};
    for (int token = 0; token < p_.num_tokens; ++token) {
      std::vector<double> sums(static_cast<size_t>(p_.hidden_size));
      for (int slot = 0; slot < p_.top_k; ++slot) add_slot(sums, token * p_.top_k + slot);
      for (double& sum : sums) {
        if (std::isinf(sum)) sum = judge::kAnything;
      }
      out.values.insert(out.values.end(), sums.begin(), sums.end());
    }
    return out;
  }

 private:
  int expert_of(int flat_id) const { return routing_.topk_ids[static_cast<size_t>(flat_id)]; }

  // Adds the slot's part; infinity stands for anything.
  void add_slot(std::vector<double>& sums, int flat_id) const {
    const int x_row = mistake_.row_is_flat_id ? flat_id : flat_id / p_.top_k;
    if (x_row >= p_.num_tokens) {
      std::fill(sums.begin(), sums.end(), INFINITY);
      return;
    }
    const int expert = expert_of(flat_id);
    const Row h = coded_h(row_of_x(x_row), expert);
    const double weight =
        std::pow(routing_.topk_weights[static_cast<size_t>(flat_id)], mistake_.weight);
    for (int column = 0; column < p_.hidden_size; ++column) {
      const bool second = column / kBlock % 2 == 1;
      const int scale_row = second && mistake_.scale_of_first_half ? column - kBlock : column;
      sums[static_cast<size_t>(column)] += weight * product(h, w2_, expert, column, scale_row);
    }
  }

  Row row_of_x(int token) const {
    Row row;
    const auto depth = static_cast<size_t>(p_.hidden_size);
    const size_t first = static_cast<size_t>(token) * depth;
    for (size_t d = 0; d < depth; ++d) row.codes.push_back(value_of(x_.codes[first + d]));
    const size_t scale_row = mistake_.x_scale_of_first_token ? 0 : static_cast<size_t>(token);
    for (size_t b = 0; b < depth / kBlock; ++b) {
      row.scales.push_back(static_cast<double>(x_.scales[scale_row * (depth / kBlock) + b]));
    }
    return row;
  }

  Row coded_h(const Row& x, int expert) const {
    Row h;
    for (int first = 0; first < p_.intermediate_size; first += kBlock) {
      std::vector<double> values;
      for (int i = first; i < first + kBlock; ++i) {
        const int up = mistake_.up_is_next_gate ? i + kBlock : p_.intermediate_size + i;
        const double g = product(x, w13_, expert, i, i);
        const double u = product(x, w13_, expert, up, mistake_.scale_of_first_half ? i : up);
        // SiLU counts gates below -20 as -20.
        values.push_back((g < -20.0 ? g / (1.0 + std::exp(20.0)) : silu(g)) * u);
      }
      append_codes(h, values);
    }
    return h;
  }

  // Codes and scale of 128 columns of a row of h. Lane t of four has columns 2t and 2t + 1 of every
  // eight; where lanes don't agree on the scale, that of lane 0 is stored.
  void append_codes(Row& h, const std::vector<double>& values) const {
    std::array<float, 4> scales{};
    for (size_t lane = 0; lane < 4; ++lane) {
      const auto lanes = static_cast<size_t>(mistake_.amax_lanes);
      float amax = 0.0f;
      for (size_t i = 0; i < values.size(); ++i) {
        const auto magnitude = static_cast<float>(std::fabs(values[i]));
        if (i % 8 / 2 / lanes == lane / lanes && !std::isnan(magnitude)) {
          amax = std::max(amax, magnitude);
        }
      }
      amax = std::min(amax, judge::to_float(judge::Bf16{0x7f7f}));
      scales[lane] = std::max(amax, 1e-10f) / 448.0f;
    }
    for (size_t i = 0; i < values.size(); ++i) {
      const auto scale = static_cast<double>(scales[i % 8 / 2]);
      const double quotient = mistake_.codes_not_divided ? values[i] : values[i] / scale;
      const double code = value_of(judge::to_e4m3(quotient));
      h.codes.push_back(code);
    }
    h.scales.push_back(static_cast<double>(scales[0]));
  }

  // A row of A times row `row` of the expert's W, with the scale of `scale_row`.
  double product(const Row& a, const Weights& w, int expert, int row, int scale_row) const {
    const auto depth = static_cast<size_t>(w.depth);
    const size_t blocks = depth / kBlock;
    const size_t w_row =
        static_cast<size_t>(expert) * static_cast<size_t>(w.n) + static_cast<size_t>(row);
    const size_t scale_block = static_cast<size_t>(expert) * static_cast<size_t>(w.n / kBlock) +
                               static_cast<size_t>(scale_row / kBlock);
    const judge::Fp8* codes = w.coded.codes.data() + w_row * depth;
    double total = 0.0;
    for (size_t block = 0; block < blocks; ++block) {
      double sum = 0.0;
      const size_t end = mistake_.last_step_missing ? 96 : 128;
      for (size_t d = block * kBlock; d < block * kBlock + end; ++d) {
        sum += a.codes[d] * value_of(codes[d]);
      }
      const size_t w_block = mistake_.first_w_scale ? 0 : block;
      if (!mistake_.no_a_scale) sum *= a.scales[mistake_.first_a_scale ? 0 : block];
      if (!mistake_.no_w_scale) {
        sum *= static_cast<double>(w.coded.scales[scale_block * blocks + w_block]);
      }
      total = mistake_.last_block_only ? sum : total + sum;
    }
    return total;
  }

  const Fp8LayerProblem& p_;
  Fp8LayerMistake mistake_;
  Routing routing_;
  Weights w13_;
  Weights w2_;
  Quantized x_;
};

}  // namespace

judge::Matrix moe_layer_fp8(const Fp8LayerProblem& p, const Fp8LayerMistake& mistake) {
  return Fp8Layer(p, mistake).out();
}

std::vector<int> rows_of_experts(const Fp8LayerProblem& p) {
  std::vector<int> rows(static_cast<size_t>(p.num_experts));
  const auto routing = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
  for (const int32_t expert : routing.topk_ids) ++rows[static_cast<size_t>(expert)];
  return rows;
}

}  // namespace moe::oracle
