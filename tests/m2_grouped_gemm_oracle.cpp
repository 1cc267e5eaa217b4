#include "m2_grouped_gemm_oracle.h"

#include <limits>

namespace moe::oracle {

double dot(const GemmProblem& p, int64_t row, int expert, int column, int depth) {
  if (row < 0 || row >= p.rows_of_a()) return std::numeric_limits<double>::quiet_NaN();
  const auto width = static_cast<size_t>(p.depth);
  const judge::Bf16* a = p.a.data() + static_cast<size_t>(row) * width;
  const judge::Bf16* w =
      p.w.data() + (static_cast<size_t>(expert - p.first_expert) * static_cast<size_t>(p.n) +
                    static_cast<size_t>(column)) *
                       width;
  double sum = 0.0;
  for (int d = 0; d < depth; ++d) {
    sum += static_cast<double>(judge::to_float(a[d])) * static_cast<double>(judge::to_float(w[d]));
  }
  return sum;
}

judge::Matrix grouped_gemm(const GemmProblem& p) {
  judge::Matrix out = {p.num_ids(), p.n, {}};
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    const int row = p.rows_are_slots ? flat_id : flat_id / p.top_k;
    for (int column = 0; column < p.n; ++column) {
      out.values.push_back(
          p.routed(flat_id) ? dot(p, row, p.topk_ids[static_cast<size_t>(flat_id)], column, p.depth)
                            : judge::kUntouched);
    }
  }
  return out;
}

}  // namespace moe::oracle
