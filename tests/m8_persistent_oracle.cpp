#include "m8_persistent_oracle.h"

#include <algorithm>

#include "m1_align_oracle.h"

namespace moe::oracle {
namespace {

constexpr int kUnit = 16;
constexpr int kTileColumns = 128;

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

// Rows of an expert's tiles but the last.
int tile_rows(const LayerProblem& p, int gemm, int rows) {
  if (gemm == 1) return 128;
  const int even = p.num_ids() / p.num_experts;
  const int longest = even <= 48 ? 64 : even <= 112 ? 128 : 256;
  const int tiles = (round_up(rows, kUnit) + longest - 1) / longest;
  return round_up((round_up(rows, kUnit) + tiles - 1) / tiles, kUnit);
}

}  // namespace

std::vector<PersistentTile> persistent_tiles(const LayerProblem& p, int gemm) {
  const auto ids = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize).topk_ids;
  const int columns = gemm == 1 ? p.intermediate_size : p.hidden_size;
  std::vector<PersistentTile> tiles;
  for (int expert = 0; expert < p.num_experts; ++expert) {
    std::vector<int> tokens;
    for (int id = 0; id < p.num_ids(); ++id) {
      if (ids[static_cast<size_t>(id)] == expert) tokens.push_back(id / p.top_k);
    }
    if (tokens.empty()) continue;
    const int rows = static_cast<int>(tokens.size());
    const int step = tile_rows(p, gemm, rows);
    for (int column = 0; column < columns; column += kTileColumns) {
      for (int first = 0; first < rows; first += step) {
        const auto begin = tokens.begin() + first;
        tiles.push_back(
            {gemm, expert, first, column, {begin, begin + std::min(step, rows - first)}});
      }
    }
  }
  return tiles;
}

}  // namespace moe::oracle
