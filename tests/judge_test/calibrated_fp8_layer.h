// moe_layer_fp8 as kernels compute it, right ones in the orders of GPUs and some with mistakes.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "../judge/fp8.h"
#include "../m10_fp8_hopper_oracle.h"
#include "../m1_align_oracle.h"
#include "../m5_block_fp8_oracle.h"
#include "calibrated_sums.h"
#include "gpu_sums.h"

namespace moe::judge {

inline constexpr size_t kScaleBlock = 128;

// The sum of a block's products, on top of what is carried.
using BlockSum = std::function<double(const std::vector<double>& products, double carried)>;

inline BlockSum in_fp32(Order order) {
  return [order](const std::vector<double>& products, double /*carried*/) {
    return sum_in_order(products, order);
  };
}
inline double hopper_sum(const std::vector<double>& products, double carried) {
  return truncated_sum(products, kBitsOfE4m3, 32, carried);
}

struct Fp8LayerWay {
  BlockSum sum = in_fp32(Order::kForward);
  bool blocks_backward = false;
  SiluFormula swiglu = silu_in_fp32;
  bool by_reciprocal = false;  // codes of h * (1 / scale)
  bool weight_in_gemm2 = false;
  double (*y)(double) = as_float;
  // Mistakes.
  bool promoted = true;
  double (*h)(double) = as_float;  // what h goes through before its codes
  double (*w_scale)(double) = as_float;
};

// Of A: values of codes, and a scale for each block.
struct CodedRow {
  std::vector<double> codes;
  std::vector<double> scales;
};

inline double value_of(Fp8 code) {
  static const std::vector<double> values = [] {
    std::vector<double> table;
    for (int i = 0; i < 256; ++i) table.push_back(from_e4m3(static_cast<Fp8>(i)));
    return table;
  }();
  return values[code];
}

class Fp8Layer {
 public:
  Fp8Layer(const oracle::Fp8LayerProblem& p, const Fp8LayerWay& way)
      : p_(p),
        way_(way),
        hidden_(static_cast<size_t>(p.hidden_size)),
        inner_(static_cast<size_t>(p.intermediate_size)),
        routing_(oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize)),
        x_(oracle::quantize({p.num_tokens, 1, p.hidden_size, false, p.x})) {}

  // Before it is rounded to the type of out.
  std::vector<double> out() const {
    std::vector<double> values;
    for (size_t token = 0; token < static_cast<size_t>(p_.num_tokens); ++token) {
      const CodedRow x = x_row(token);
      std::vector<std::vector<double>> y(hidden_);  // [column][slot]
      for (size_t slot = 0; slot < static_cast<size_t>(p_.top_k); ++slot) {
        add_slot(y, x, token * static_cast<size_t>(p_.top_k) + slot);
      }
      for (const auto& slots : y) values.push_back(sum_in_order(slots, Order::kForward));
    }
    return values;
  }

 private:
  void add_slot(std::vector<std::vector<double>>& y, const CodedRow& x, size_t flat_id) const {
    const auto expert = static_cast<size_t>(routing_.topk_ids[flat_id]);
    const double weight = as_float(routing_.topk_weights[flat_id]);
    const CodedRow h = coded_h(x, expert);
    for (size_t column = 0; column < hidden_; ++column) {
      const double sum = product(h, p_.w2, expert * hidden_ + column);
      y[column].push_back(way_.weight_in_gemm2 ? way_.y(as_float(sum * weight))
                                               : as_float(weight * way_.y(sum)));
    }
  }

  CodedRow x_row(size_t token) const {
    CodedRow row;
    const Fp8* codes = &x_.codes[token * hidden_];
    for (size_t d = 0; d < hidden_; ++d) row.codes.push_back(value_of(codes[d]));
    const size_t blocks = hidden_ / kScaleBlock;
    for (size_t b = 0; b < blocks; ++b) {
      row.scales.push_back(static_cast<double>(x_.scales[token * blocks + b]));
    }
    return row;
  }

  CodedRow coded_h(const CodedRow& x, size_t expert) const {
    CodedRow h;
    for (size_t first = 0; first < inner_; first += kScaleBlock) {
      std::vector<float> values;
      float amax = 0.0f;
      for (size_t i = first; i < first + kScaleBlock; ++i) {
        const double gate = product(x, p_.w13, expert * 2 * inner_ + i);
        const double up = product(x, p_.w13, (expert * 2 + 1) * inner_ + i);
        values.push_back(static_cast<float>(way_.h(way_.swiglu(gate, up))));
        amax = std::max(amax, std::fabs(values.back()));
      }
      const float scale = std::max(amax, 1e-10f) / 448.0f;
      for (const float v : values) {
        const float quotient = way_.by_reciprocal ? v * (1.0f / scale) : v / scale;
        h.codes.push_back(value_of(to_e4m3(static_cast<double>(quotient))));
      }
      h.scales.push_back(static_cast<double>(scale));
    }
    return h;
  }

  // A row of A times a row of W [E * n, depth].
  double product(const CodedRow& a, const oracle::Coded& w, size_t row) const {
    const size_t depth = a.codes.size();
    const size_t blocks = depth / kScaleBlock;
    std::vector<double> products(kScaleBlock);
    double total = 0.0;
    double sum = 0.0;  // of the block before
    double scale = 0.0;
    for (size_t turn = 0; turn < blocks; ++turn) {
      const size_t block = way_.blocks_backward ? blocks - 1 - turn : turn;
      const double* values = &a.codes[block * kScaleBlock];
      const Fp8* codes = &w.codes[row * depth + block * kScaleBlock];
      for (size_t d = 0; d < kScaleBlock; ++d) products[d] = values[d] * value_of(codes[d]);
      const double scale_before = scale;
      const auto w_scale = static_cast<double>(w.scales[row / kScaleBlock * blocks + block]);
      scale = as_float(a.scales[block] * way_.w_scale(w_scale));
      // One sum over all of the reduction must be put into the units of each block's codes.
      sum = way_.sum(products, way_.promoted ? 0.0 : sum * (scale_before / scale));
      total = as_float(way_.promoted ? total + sum * scale : sum * scale);
    }
    return total;
  }

  const oracle::Fp8LayerProblem& p_;
  Fp8LayerWay way_;
  size_t hidden_;
  size_t inner_;
  oracle::Routing routing_;
  oracle::Quantized x_;
};

}  // namespace moe::judge
