#include "m3_weighted_epilogue_oracle.h"

#include <cmath>

namespace moe::oracle {

double silu(double gate) {
  if (gate < 0.0) {  // e^gate is at most 1: no overflow, and no digits lost
    const double power = std::exp(gate);
    return gate * power / (1.0 + power);
  }
  return gate / (1.0 + std::exp(-gate));
}

judge::Matrix silu_and_mul(const SiluProblem& p) {
  judge::Matrix h = {p.num_ids, p.intermediate_size, {}};
  for (int row = 0; row < p.num_ids; ++row) {
    for (int column = 0; column < p.intermediate_size; ++column) {
      h.values.push_back(silu(p.value(row, column)) * p.value(row, column + p.intermediate_size));
    }
  }
  return h;
}

judge::Matrix grouped_gemm_weighted(const WeightedProblem& p) {
  judge::Matrix out = grouped_gemm(p.gemm);
  for (int flat_id = 0; flat_id < p.gemm.num_ids(); ++flat_id) {
    if (!p.gemm.routed(flat_id)) continue;
    const auto first = static_cast<size_t>(flat_id) * static_cast<size_t>(p.gemm.n);
    for (size_t i = first; i < first + static_cast<size_t>(p.gemm.n); ++i) {
      out.values[i] *= static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)]);
    }
  }
  return out;
}

judge::Matrix combine(const CombineProblem& p) {
  judge::Matrix out = {p.num_tokens, p.hidden_size, {}};
  for (int token = 0; token < p.num_tokens; ++token) {
    for (int column = 0; column < p.hidden_size; ++column) {
      double sum = 0.0;
      for (int flat_id = token * p.top_k; flat_id < (token + 1) * p.top_k; ++flat_id) {
        if (p.routed(flat_id)) sum += p.value(flat_id, column);
      }
      out.values.push_back(sum);
    }
  }
  return out;
}

}  // namespace moe::oracle
