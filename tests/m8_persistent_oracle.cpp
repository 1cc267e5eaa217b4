#include "m8_persistent_oracle.h"

#include <algorithm>
#include <numeric>

#include "m1_align_oracle.h"

namespace moe::oracle {
namespace {

constexpr int kUnit = 16;
constexpr int kTokens1 = 128;
constexpr int kTileColumns = 128;

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

// Rows of each of an expert's tiles, padding included. Of GEMM1: 128 and a last one that is
// shorter; but where at most two units of 16 are left over, and as many tiles, the first tiles take
// one each.
std::vector<int> lengths_of_tiles(const LayerProblem& p, int gemm, int rows) {
  const int padded = round_up(rows, kUnit);
  if (gemm == 1) {
    std::vector<int> lengths(static_cast<size_t>(padded / kTokens1), kTokens1);
    const int left = padded % kTokens1;
    const auto units = static_cast<size_t>(left / kUnit);
    if (units > std::min<size_t>(lengths.size(), 2)) {
      lengths.push_back(left);
    } else {
      for (size_t i = 0; i < units; ++i) lengths[i] += kUnit;
    }
    return lengths;
  }
  const int even = p.num_ids() / p.num_experts;
  const int longest = even <= 48 ? 64 : even <= 112 ? 128 : 256;
  const int tiles = (padded + longest - 1) / longest;
  const int length = round_up((padded + tiles - 1) / tiles, kUnit);
  return std::vector<int>(static_cast<size_t>(tiles), length);
}

// As they are numbered; if one has more than twice its share, long and short ones in turn.
std::vector<int> order_of_work(const std::vector<std::vector<int>>& tokens_of, int num_ids) {
  const size_t count = tokens_of.size();
  std::vector<int> experts(count);
  std::iota(experts.begin(), experts.end(), 0);
  const auto rows = [&](int e) { return tokens_of[static_cast<size_t>(e)].size(); };
  const bool skewed = std::any_of(experts.begin(), experts.end(), [&](int e) {
    return rows(e) * count > 2 * static_cast<size_t>(num_ids);
  });
  if (!skewed) return experts;
  std::stable_sort(experts.begin(), experts.end(), [&](int a, int b) { return rows(a) > rows(b); });
  std::vector<int> in_turn;
  for (size_t i = 0; in_turn.size() < count; ++i) {
    in_turn.push_back(experts[i]);
    if (in_turn.size() < count) in_turn.push_back(experts[count - 1 - i]);
  }
  return in_turn;
}

}  // namespace

std::vector<PersistentTile> persistent_tiles(const LayerProblem& p, int gemm) {
  const auto ids = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize).topk_ids;
  const int columns = gemm == 1 ? p.intermediate_size : p.hidden_size;
  std::vector<std::vector<int>> tokens_of(static_cast<size_t>(p.num_experts));
  for (int id = 0; id < p.num_ids(); ++id) {
    tokens_of[static_cast<size_t>(ids[static_cast<size_t>(id)])].push_back(id / p.top_k);
  }
  std::vector<PersistentTile> tiles;
  for (const int expert : order_of_work(tokens_of, p.num_ids())) {
    const std::vector<int>& tokens = tokens_of[static_cast<size_t>(expert)];
    if (tokens.empty()) continue;
    const int rows = static_cast<int>(tokens.size());
    const std::vector<int> lengths = lengths_of_tiles(p, gemm, rows);
    for (int column = 0; column < columns; column += kTileColumns) {
      int first = 0;
      for (const int length : lengths) {
        if (first >= rows) break;
        const auto begin = tokens.begin() + first;
        tiles.push_back(
            {gemm, expert, first, column, {begin, begin + std::min(length, rows - first)}});
        first += length;
      }
    }
  }
  return tiles;
}

}  // namespace moe::oracle
