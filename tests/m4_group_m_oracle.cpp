#include "m4_group_m_oracle.h"

#include <algorithm>
#include <list>
#include <map>

#include "m3_weighted_epilogue_oracle.h"

namespace moe::oracle {

TilePlace tile_of(int pid, const TileGrid& grid) {
  // Walks the groups one by one instead of dividing.
  int first = 0;
  int rows = std::min(grid.group_m, grid.num_pid_m);
  while (pid >= rows * grid.num_pid_n) {
    pid -= rows * grid.num_pid_n;
    first += rows;
    rows = std::min(grid.group_m, grid.num_pid_m - first);
  }
  return {first + pid % rows, pid / rows};
}

std::vector<TilePlace> order_of(const TileGrid& grid) {
  std::vector<TilePlace> order;
  order.reserve(static_cast<size_t>(grid.size()));
  for (int pid = 0; pid < grid.size(); ++pid) order.push_back(tile_of(pid, grid));
  return order;
}

int64_t panels_loaded(const std::vector<TilePlace>& order, const PanelCache& cache) {
  struct Panel {
    int matrix;  // -1: A, else the expert of W
    int index;
    auto operator<=>(const Panel&) const = default;
  };
  std::list<Panel> held;  // the one used last stands first
  std::map<Panel, std::list<Panel>::iterator> places;
  int64_t loads = 0;
  const auto use = [&](const Panel& panel) {
    const auto place = places.find(panel);
    if (place != places.end()) {
      held.splice(held.begin(), held, place->second);
      return;
    }
    ++loads;
    held.push_front(panel);
    places[panel] = held.begin();
    if (static_cast<int>(held.size()) <= cache.capacity) return;
    places.erase(held.back());
    held.pop_back();
  };
  for (const TilePlace& tile : order) {
    const int expert =
        cache.expert_of_row.empty() ? 0 : cache.expert_of_row[static_cast<size_t>(tile.m)];
    use({-1, tile.m});
    use({expert, tile.n});
  }
  return loads;
}

judge::Matrix grouped_gemm(const EpilogueProblem& p) {
  const judge::Matrix product = grouped_gemm(p.gemm);
  judge::Matrix out = {product.rows, p.columns(), {}};
  for (int64_t row = 0; row < product.rows; ++row) {
    for (int column = 0; column < p.columns(); ++column) {
      double value = product.at(row, column);
      if (value != judge::kUntouched) {
        if (p.swiglu) value = silu(value) * product.at(row, p.columns() + column);
        if (!p.topk_weights.empty()) {
          value *= static_cast<double>(p.topk_weights[static_cast<size_t>(row)]);
        }
      }
      out.values.push_back(value);
    }
  }
  return out;
}

Tile pick_tile(int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (num_tokens <= num_experts) return kFewTokensTile;
  const TunedTile* tuned = nullptr;
  for (const TunedTile& line : kTunedTiles) {
    if (line.num_experts != num_experts || line.top_k != top_k || line.hidden_size != hidden_size ||
        line.intermediate_size != intermediate_size || line.num_tokens > num_tokens) {
      continue;
    }
    if (tuned == nullptr || line.num_tokens > tuned->num_tokens) tuned = &line;
  }
  if (tuned != nullptr) return tuned->tile;
  const DefaultTile* chosen = &kDefaultTiles[0];
  for (const DefaultTile& line : kDefaultTiles) {
    const bool fits = static_cast<int64_t>(line.rows_per_expert) * num_experts <=
                      static_cast<int64_t>(num_tokens) * top_k;
    if (fits && line.rows_per_expert >= chosen->rows_per_expert) chosen = &line;
  }
  return chosen->tile;
}

}  // namespace moe::oracle
