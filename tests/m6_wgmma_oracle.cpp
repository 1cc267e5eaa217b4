#include "m6_wgmma_oracle.h"

#include <limits>

namespace moe::oracle {

GemmTiles::GemmTiles(const GemmProblem& problem) : p_(problem) {}

int GemmTiles::depth() const {
  return (p_.depth + kTileDepth - 1) / kTileDepth * kTileDepth;
}

double GemmTiles::a(int position, int d) const {
  return d < p_.depth ? a_unmasked(position, d) : 0.0;
}

double GemmTiles::a_unmasked(int position, int d) const {
  const int flat_id = p_.sorted_token_ids[static_cast<size_t>(position)];
  if (flat_id >= p_.num_ids()) return 0.0;
  const int row = p_.rows_are_slots ? flat_id : flat_id / p_.top_k;
  const size_t index =
      static_cast<size_t>(row) * static_cast<size_t>(p_.depth) + static_cast<size_t>(d);
  return index < p_.a.size() ? static_cast<double>(judge::to_float(p_.a[index]))
                             : std::numeric_limits<double>::quiet_NaN();
}

double GemmTiles::w(int expert, int column, int d) const {
  if (column >= p_.n || d >= p_.depth) return 0.0;
  const size_t row = static_cast<size_t>(expert - p_.first_expert) * static_cast<size_t>(p_.n) +
                     static_cast<size_t>(column);
  return static_cast<double>(
      judge::to_float(p_.w[row * static_cast<size_t>(p_.depth) + static_cast<size_t>(d)]));
}

judge::Matrix GemmTiles::sum(const Term& term) const {
  const auto columns = static_cast<size_t>(p_.n);
  judge::Matrix out = {p_.num_ids(), p_.n, {}};
  out.values.assign(static_cast<size_t>(p_.num_ids()) * columns, judge::kUntouched);
  for (int position = 0; position < p_.num_tokens_post_padded; ++position) {
    const int flat_id = p_.sorted_token_ids[static_cast<size_t>(position)];
    if (flat_id >= p_.num_ids()) continue;
    const int expert = p_.expert_ids[static_cast<size_t>(position / p_.block_m)];
    for (int column = 0; column < p_.n; ++column) {
      double total = 0.0;
      for (int d = 0; d < depth(); ++d) total += term(position, expert, column, d);
      out.values[static_cast<size_t>(flat_id) * columns + static_cast<size_t>(column)] = total;
    }
  }
  return out;
}

}  // namespace moe::oracle
