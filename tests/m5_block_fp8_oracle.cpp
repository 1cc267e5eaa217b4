#include "m5_block_fp8_oracle.h"

#include <algorithm>
#include <cmath>

namespace moe::oracle {
namespace {

constexpr int kBlock = 128;

// The part of a matrix that one scale covers.
struct Block {
  size_t matrix, first_row, last_row, first_k, last_k;
};

std::vector<Block> blocks_of(const QuantizeProblem& p) {
  std::vector<Block> blocks;
  const auto n = static_cast<size_t>(p.n);
  const auto depth = static_cast<size_t>(p.depth);
  for (size_t matrix = 0; matrix < static_cast<size_t>(p.num_matrices); ++matrix) {
    for (size_t row = 0; row < n; row += kBlock) {
      for (size_t k = 0; k < depth; k += kBlock) {
        blocks.push_back({matrix, row, std::min(row + kBlock, n), k, std::min(k + kBlock, depth)});
      }
    }
  }
  return blocks;
}

template <class Visit>
void for_each_index(const QuantizeProblem& p, const Block& block, Visit visit) {
  for (size_t row = block.first_row; row < block.last_row; ++row) {
    const size_t start =
        (block.matrix * static_cast<size_t>(p.n) + row) * static_cast<size_t>(p.depth);
    for (size_t k = block.first_k; k < block.last_k; ++k) visit(start + k);
  }
}

}  // namespace

float power_of_two_at_least(float scale) {
  if (!(scale > 0.0f)) return scale;  // out of its domain, but not of that of bug models
  int exponent = 0;
  const float mantissa = std::frexp(scale, &exponent);  // 0.5 <= mantissa < 1
  return std::ldexp(1.0f, mantissa > 0.5f ? exponent : exponent - 1);
}

Quantized quantize(const QuantizeProblem& p) {
  Quantized result;
  result.codes.resize(p.values.size());
  for (const Block& block : blocks_of(p)) {
    float amax = 0.0f;
    for_each_index(p, block, [&](size_t i) {
      const float magnitude = std::fabs(judge::to_float(p.values[i]));
      if (std::isnan(magnitude)) return;
      amax = std::max(amax, std::min(magnitude, judge::to_float(judge::Bf16{0x7f7f})));
    });
    float scale = std::max(amax, 1e-10f) / 448.0f;
    if (p.power_of_two) scale = power_of_two_at_least(scale);
    result.scales.push_back(scale);
    for_each_index(p, block, [&](size_t i) {
      const float quotient = judge::to_float(p.values[i]) / scale;  // rounded to fp32
      result.codes[i] = judge::to_e4m3(static_cast<double>(quotient));
    });
  }
  return result;
}

Partials partial_sums(const Fp8GemmProblem& p, Decoder decode_a, Decoder decode_w) {
  const auto table = [](Decoder decode) {
    std::vector<double> values(256);
    for (size_t code = 0; code < 256; ++code) values[code] = decode(static_cast<judge::Fp8>(code));
    return values;
  };
  const std::vector<double> a_values = table(decode_a);
  const std::vector<double> w_values = table(decode_w);
  const auto depth = static_cast<size_t>(p.depth);
  Partials result = {p.n, p.k_blocks(), {}};
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    if (!p.routed(flat_id)) {
      result.sums.resize(result.sums.size() +
                         static_cast<size_t>(p.n) * static_cast<size_t>(p.k_blocks()));
      continue;
    }
    const judge::Fp8* a = p.a_codes.data() + static_cast<size_t>(p.row_of(flat_id)) * depth;
    const auto slab = static_cast<size_t>(p.expert_of(flat_id) - p.first_expert);
    for (size_t column = 0; column < static_cast<size_t>(p.n); ++column) {
      const judge::Fp8* w = p.w_codes.data() + (slab * static_cast<size_t>(p.n) + column) * depth;
      for (size_t first = 0; first < depth; first += kBlock) {
        double sum = 0.0;
        for (size_t d = first; d < std::min(first + kBlock, depth); ++d) {
          sum += a_values[a[d]] * w_values[w[d]];
        }
        result.sums.push_back(sum);
      }
    }
  }
  return result;
}

double a_scale_at(const Fp8GemmProblem& p, int64_t index) {
  const bool inside = index >= 0 && index < static_cast<int64_t>(p.a_scales.size());
  return inside ? static_cast<double>(p.a_scales[static_cast<size_t>(index)]) : std::nan("");
}

double w_scale_at(const Fp8GemmProblem& p, int64_t index) {
  const bool inside = index >= 0 && index < static_cast<int64_t>(p.w_scales.size());
  return inside ? static_cast<double>(p.w_scales[static_cast<size_t>(index)]) : std::nan("");
}

int64_t a_scale_index(const Fp8GemmProblem& p, int64_t row, int block) {
  return row * p.k_blocks() + block;
}

int64_t w_scale_index(const Fp8GemmProblem& p, int expert, int column, int block) {
  const int64_t tile =
      static_cast<int64_t>(expert - p.first_expert) * p.n_blocks() + column / kBlock;
  return tile * p.k_blocks() + block;
}

judge::Matrix grouped_gemm_fp8(const Fp8GemmProblem& p) {
  const Partials partials = partial_sums(p, judge::from_e4m3, judge::from_e4m3);
  judge::Matrix out = {p.num_ids(), p.n, {}};
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    const double weight = p.topk_weights.empty()
                              ? 1.0
                              : static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)]);
    for (int column = 0; column < p.n; ++column) {
      double sum = 0.0;
      for (int block = 0; block < p.k_blocks(); ++block) {
        if (!p.routed(flat_id)) break;
        sum += partials.at(flat_id, column, block) *
               a_scale_at(p, a_scale_index(p, p.row_of(flat_id), block)) *
               w_scale_at(p, w_scale_index(p, p.expert_of(flat_id), column, block));
      }
      out.values.push_back(p.routed(flat_id) ? sum * weight : judge::kUntouched);
    }
  }
  return out;
}

}  // namespace moe::oracle
