#include "m7_warp_specialized_oracle.h"

#include <limits>

#include "m3_weighted_epilogue_oracle.h"

namespace moe::oracle {

double dot(const SortedProblem& p, int64_t row_of_a, int expert, int row_of_w) {
  const auto depth = static_cast<size_t>(p.depth());
  const int64_t w_row = static_cast<int64_t>(expert - p.first_expert) * p.rows_of_w() + row_of_w;
  const int64_t a_row = row_of_a - p.first_row;
  const auto has = [depth](const std::vector<judge::Bf16>& values, int64_t row) {
    return row >= 0 && (static_cast<size_t>(row) + 1) * depth <= values.size();
  };
  if (!has(p.a, a_row) || !has(p.w, w_row)) return std::numeric_limits<double>::quiet_NaN();
  const judge::Bf16* a = p.a.data() + static_cast<size_t>(a_row) * depth;
  const judge::Bf16* w = p.w.data() + static_cast<size_t>(w_row) * depth;
  double sum = 0.0;
  for (size_t d = 0; d < depth; ++d) {
    sum += static_cast<double>(judge::to_float(a[d])) * static_cast<double>(judge::to_float(w[d]));
  }
  return sum;
}

SumOf right_sums(const SortedProblem& p) {
  return
      [&p](int row, int row_of_w) { return dot(p, p.row_of_a(row), p.expert_of(row), row_of_w); };
}

Epilogue right_epilogue(const SortedProblem& p) {
  if (p.is_gemm1) {
    return [](int, double gate, double up) { return silu(gate) * up; };
  }
  return [&p](int row, double sum, double) {
    return sum * static_cast<double>(p.topk_weights[static_cast<size_t>(p.flat_id(row))]);
  };
}

judge::Matrix sorted_gemm(const SortedProblem& p, const SumOf& sum, const Epilogue& epilogue) {
  judge::Matrix out = {p.capacity(), p.columns(), {}};
  out.values.reserve(static_cast<size_t>(out.rows) * static_cast<size_t>(out.columns));
  for (int row = 0; row < p.capacity(); ++row) {
    for (int column = 0; column < p.columns(); ++column) {
      double value = judge::kUntouched;
      if (p.is_real(row)) {
        const double up = p.is_gemm1 ? sum(row, p.columns() + column) : 0.0;
        value = epilogue(row, sum(row, column), up);
      }
      out.values.push_back(value);
    }
  }
  return out;
}

judge::Matrix sorted_gemm(const SortedProblem& p) {
  return sorted_gemm(p, right_sums(p), right_epilogue(p));
}

}  // namespace moe::oracle
