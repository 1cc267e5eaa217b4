#include "layer_oracle.h"

#include <cmath>
#include <limits>

#include "m1_align_oracle.h"
#include "m3_weighted_epilogue_oracle.h"

namespace moe::oracle {
namespace {

using Row = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// input (length `depth`) times row `row` of a matrix [.., depth].
double dot(const Row& input, const std::vector<judge::Bf16>& matrix, int64_t row) {
  double sum = 0.0;
  const size_t first = static_cast<size_t>(row) * input.size();
  for (size_t d = 0; d < input.size(); ++d) {
    sum += input[d] * static_cast<double>(judge::to_float(matrix[first + d]));
  }
  return sum;
}

// The layer, token by token, with one mistake.
class Layer {
 public:
  Layer(const LayerProblem& p, const LayerMistake& mistake)
      : p_(p),
        mistake_(mistake),
        routing_(route(p.logits,
                       p.num_tokens,
                       p.num_experts,
                       p.top_k,
                       p.renormalize != mistake.flip_renormalize)) {
    for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) h_.push_back(h_row(flat_id));
  }

  double out(int token, int column) const {
    double sum = 0.0;
    for (int slot = 0; slot < p_.top_k; ++slot) sum += y(token * p_.top_k + slot, column);
    return sum;
  }

 private:
  int expert(int flat_id) const { return routing_.topk_ids[static_cast<size_t>(flat_id)]; }
  double weight(int flat_id) const { return routing_.topk_weights[static_cast<size_t>(flat_id)]; }

  Row x_row(int row) const {
    const auto width = static_cast<size_t>(p_.hidden_size);
    if (row >= p_.num_tokens) return Row(width, kNan);
    Row values;
    for (size_t d = 0; d < width; ++d) {
      values.push_back(
          static_cast<double>(judge::to_float(p_.x[static_cast<size_t>(row) * width + d])));
    }
    return values;
  }

  Row h_row(int flat_id) const {
    const Row x = x_row(mistake_.gemm1_row_is_flat_id ? flat_id : flat_id / p_.top_k);
    const int64_t first = static_cast<int64_t>(expert(flat_id)) * 2 * p_.intermediate_size;
    Row gate_up;
    for (int i = 0; i < 2 * p_.intermediate_size; ++i) {
      gate_up.push_back(dot(x, p_.w13, first + i) *
                        (mistake_.weight_in_gemm1 ? weight(flat_id) : 1.0));
    }
    Row h;
    for (int i = 0; i < p_.intermediate_size; ++i) {
      const auto column = static_cast<size_t>(i);
      const double up = gate_up[column + static_cast<size_t>(p_.intermediate_size)];
      const double exact = silu(gate_up[column]) * up;
      h.push_back(static_cast<double>(judge::to_float(judge::to_bf16(exact))));
    }
    return h;
  }

  double y(int flat_id, int column) const {
    const int row = mistake_.gemm2_row_is_token ? flat_id / p_.top_k : flat_id;
    const int64_t first = static_cast<int64_t>(expert(flat_id)) * p_.hidden_size;
    return (mistake_.weight_in_gemm2 ? weight(flat_id) : 1.0) *
           dot(h_[static_cast<size_t>(row)], p_.w2, first + column);
  }

  const LayerProblem& p_;
  LayerMistake mistake_;
  Routing routing_;
  std::vector<Row> h_;  // [T*K][I]
};

}  // namespace

judge::Matrix moe_layer(const LayerProblem& p, const LayerMistake& mistake) {
  const Layer layer(p, mistake);
  judge::Matrix out = {p.num_tokens, p.hidden_size, {}};
  for (int token = 0; token < p.num_tokens; ++token) {
    for (int column = 0; column < p.hidden_size; ++column) {
      out.values.push_back(layer.out(token, column));
    }
  }
  return out;
}

}  // namespace moe::oracle
