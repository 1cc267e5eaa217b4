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

std::array<double, 256> decoded_codes() {
  std::array<double, 256> values{};
  for (size_t i = 0; i < 256; ++i) values[i] = judge::from_e4m3(static_cast<judge::Fp8>(i));
  return values;
}
const std::array<double, 256> kValues = decoded_codes();

double code_nearest(double value) {
  return kValues[judge::to_e4m3(value)];
}

// Another value that h may have at a place, because its code is open.
struct Other {
  size_t at;
  double change;  // scale included
};

// One row of A: its values without the scales, and the scales; of h also what is open.
struct Row {
  std::vector<double> codes;
  std::vector<double> scales;
  std::vector<Other> others;
};

// A sum of products, and how far off a right kernel may be. The tensor cores keep 14 bits, so each
// of the four steps of a block loses up to 2^-13 of what is there, which is about as large as the
// root of the sum of squares; blocks err independently of each other. A right kernel is off
// by 1.2e-4 of that root, one that never promotes by 3e-3 after 4096.
struct Sum {
  double value = 0.0;
  double error = 0.0;
};
constexpr double kSumError = 5e-4;

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
        w2_{p.w2, p.hidden_size, p.intermediate_size},
        x_(quantize({p.num_tokens, 1, p.hidden_size, mistake.x_power_of_two, p.x})) {}

  // Without what is open, unless that is asked for.
  Fp8LayerReference reference(bool with_open) const {
    const auto columns = static_cast<size_t>(p_.hidden_size);
    const judge::Matrix zeros = {p_.num_tokens, p_.hidden_size,
                                 std::vector<double>(static_cast<size_t>(p_.num_tokens) * columns)};
    Fp8LayerReference reference = {zeros, {}};
    for (int flat_id = 0; flat_id < p_.num_ids(); ++flat_id) {
      const size_t first = static_cast<size_t>(flat_id / p_.top_k) * columns;
      add_slot(&reference.out.values[first], with_open ? &reference.open : nullptr, flat_id);
    }
    return reference;
  }

 private:
  int expert_of(int flat_id) const { return routing_.topk_ids[static_cast<size_t>(flat_id)]; }

  // Adds the slot's part of a token's row of out, and of what is open.
  void add_slot(double* out, std::vector<OpenCode>* open, int flat_id) const {
    const int x_row = mistake_.row_is_flat_id ? flat_id : flat_id / p_.top_k;
    if (x_row >= p_.num_tokens) {
      std::fill(out, out + p_.hidden_size, judge::kAnything);
      return;
    }
    const int expert = expert_of(flat_id);
    const Row h = coded_h(row_of_x(x_row, flat_id / p_.top_k), expert);
    const double weight =
        std::pow(routing_.topk_weights[static_cast<size_t>(flat_id)], mistake_.weight);
    for (int column = 0; column < p_.hidden_size; ++column) {
      const bool second = column / kBlock % 2 == 1;
      const int scale_row = second && mistake_.scale_of_first_half ? column - kBlock : column;
      if (out[column] != judge::kAnything) {
        out[column] += weight * product(h, w2_, expert, column, scale_row).value;
      }
    }
    if (open == nullptr) return;
    for (const Other& other : h.others) {
      open->push_back({flat_id / p_.top_k, {}});
      for (int column = 0; column < p_.hidden_size; ++column) {
        open->back().change.push_back(weight * other.change * w2_value(expert, column, other.at));
      }
    }
  }

  double w2_value(int expert, int column, size_t d) const {
    const auto depth = static_cast<size_t>(p_.intermediate_size);
    const auto row = static_cast<size_t>(expert) * static_cast<size_t>(p_.hidden_size) +
                     static_cast<size_t>(column);
    const size_t scale = row / kBlock * (depth / kBlock) + d / kBlock;
    return kValues[p_.w2.codes[row * depth + d]] * static_cast<double>(p_.w2.scales[scale]);
  }

  Row row_of_x(int code_row, int token) const {
    Row row;
    const auto depth = static_cast<size_t>(p_.hidden_size);
    const size_t first = static_cast<size_t>(code_row) * depth;
    for (size_t d = 0; d < depth; ++d) row.codes.push_back(kValues[x_.codes[first + d]]);
    const size_t scale_row = mistake_.x_scale_of_first_token ? 0 : static_cast<size_t>(token);
    for (size_t b = 0; b < depth / kBlock; ++b) {
      row.scales.push_back(static_cast<double>(x_.scales[scale_row * (depth / kBlock) + b]));
    }
    return row;
  }

  Row coded_h(const Row& x, int expert) const {
    Row h;
    for (int first = 0; first < p_.intermediate_size; first += kBlock) {
      std::vector<Sum> values;
      for (int i = first; i < first + kBlock; ++i) {
        const int up = mistake_.up_is_next_gate ? i + kBlock : p_.intermediate_size + i;
        const Sum g = product(x, w13_, expert, i, i);
        const Sum u = product(x, w13_, expert, up, mistake_.scale_of_first_half ? i : up);
        // SiLU's slope is at most 1.1. (Gates below -20 may count as -20: 4e-8 of up.)
        const double act = silu(g.value);
        const double error = 1.1 * g.error * (std::fabs(u.value) + u.error) +
                             std::fabs(act) * u.error + 5e-8 * std::fabs(u.value);
        values.push_back({act * u.value, error});
      }
      append_codes(h, values);
    }
    return h;
  }

  // The scale of each lane: lane t of four has columns 2t and 2t + 1 of every eight.
  std::array<float, 4> scales_of(const std::vector<Sum>& values, double* widest) const {
    std::array<float, 4> scales{};
    const auto lanes = static_cast<size_t>(mistake_.amax_lanes);
    for (size_t lane = 0; lane < 4; ++lane) {
      float amax = 0.0f;
      for (size_t i = 0; i < values.size(); ++i) {
        const double value = values[i].value;
        const auto magnitude =
            static_cast<float>(mistake_.amax_of_positive ? value : std::fabs(value));
        const bool is_of_lane = i % 8 / 2 / lanes == lane / lanes;
        if (!is_of_lane || std::isnan(magnitude) || magnitude <= amax) continue;
        amax = magnitude;
        *widest = values[i].error / values[i].value;
      }
      amax = std::min(amax, judge::to_float(judge::Bf16{0x7f7f}));
      scales[lane] = std::max(amax, 1e-10f) / 448.0f;
    }
    *widest = std::fabs(*widest);
    return scales;
  }

  // Codes and scale of 128 columns of a row of h. Where lanes don't agree on the scale, that of
  // lane 0 is stored.
  void append_codes(Row& h, const std::vector<Sum>& values) const {
    double scale_error = 0.0;  // relative
    const auto scales = scales_of(values, &scale_error);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto scale = static_cast<double>(scales[i % 8 / 2]);
      const Sum& v = values[i];
      h.codes.push_back(code_nearest(mistake_.codes_not_divided ? v.value : v.value / scale));
      const double reach = v.error + scale_error * std::fabs(v.value);
      const double code = code_nearest(v.value / scale);
      for (const double end : {v.value - reach, v.value + reach}) {
        const double change = (code_nearest(end / scale) - code) * scale;
        if (std::fabs(change) > 0.0) h.others.push_back({h.codes.size() - 1, change});
      }
    }
    h.scales.push_back(static_cast<double>(scales[0]));
  }

  // A row of A times row `row` of the expert's W, with the scale of `scale_row`.
  Sum product(const Row& a, const Weights& w, int expert, int row, int scale_row) const {
    const auto depth = static_cast<size_t>(w.depth);
    const size_t blocks = depth / kBlock;
    const bool is_gemm1 = &w.coded == &p_.w13;
    const int second = is_gemm1 ? p_.intermediate_size : kBlock;  // from the first half of W
    const bool is_second = is_gemm1 ? row >= second : row / kBlock % 2 == 1;
    const int code_row = mistake_.codes_of_first_half && is_second ? row - second : row;
    const size_t w_row =
        static_cast<size_t>(expert) * static_cast<size_t>(w.n) + static_cast<size_t>(code_row);
    const size_t scale_block = static_cast<size_t>(expert) * static_cast<size_t>(w.n / kBlock) +
                               static_cast<size_t>(scale_row / kBlock);
    const judge::Fp8* codes = w.coded.codes.data() + w_row * depth;
    Sum total;
    double all_squares = 0.0;
    for (size_t block = 0; block < blocks; ++block) {
      double sum = 0.0;
      double squares = 0.0;
      const size_t end = mistake_.last_step_missing ? 96 : 128;
      for (size_t d = block * kBlock; d < block * kBlock + end; ++d) {
        const size_t a_at = mistake_.first_x_block && is_gemm1 ? d % kBlock : d;
        const double term = a.codes[a_at] * kValues[codes[d]];
        sum += term;
        squares += term * term;
      }
      const size_t w_block = mistake_.first_w_scale ? 0 : block;
      double scale = mistake_.no_a_scale ? 1.0 : a.scales[mistake_.first_a_scale ? 0 : block];
      if (!mistake_.no_w_scale) {
        scale *= static_cast<double>(w.coded.scales[scale_block * blocks + w_block]);
      }
      total.value = (mistake_.last_block_only ? 0.0 : total.value) + sum * scale;
      all_squares += squares * scale * scale;
    }
    total.error = kSumError * std::sqrt(all_squares);
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
  return Fp8Layer(p, mistake).reference(false).out;
}

Fp8LayerReference fp8_layer_reference(const Fp8LayerProblem& p) {
  return Fp8Layer(p, {}).reference(true);
}

std::vector<int> rows_of_experts(const Fp8LayerProblem& p) {
  std::vector<int> rows(static_cast<size_t>(p.num_experts));
  const auto routing = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
  for (const int32_t expert : routing.topk_ids) ++rows[static_cast<size_t>(expert)];
  return rows;
}

}  // namespace moe::oracle
