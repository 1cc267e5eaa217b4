// The meaning of m4_group_m: the order of tiles, what it costs in a modelled L2 cache, the GEMM
// with its two epilogues in double, the rule of the tile table.
#pragma once

#include <drills/m4_group_m.tiles.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "judge/compare.h"
#include "m2_grouped_gemm_oracle.h"

namespace moe::oracle {

struct TilePlace {
  int m = 0;
  int n = 0;
  bool operator==(const TilePlace&) const = default;
};

// A grid of tiles and how it is to be visited.
struct TileGrid {
  int num_pid_m = 0;
  int num_pid_n = 0;
  int group_m = 1;
  int size() const { return num_pid_m * num_pid_n; }
};

TilePlace tile_of(int pid, const TileGrid& grid);

// The tiles of all pids.
std::vector<TilePlace> order_of(const TileGrid& grid);

// An L2 cache that holds `capacity` panels and drops the one that was used longest ago. A program
// reads one panel of A, that of its pid_m, and one of W, that of its expert and pid_n; programs run
// one after another. All panels have the same size, so a count of loads says how many bytes pass.
struct PanelCache {
  int capacity = 0;
  std::vector<int> expert_of_row;  // [num_pid_m]; empty: one matrix W for all
};
int64_t panels_loaded(const std::vector<TilePlace>& order, const PanelCache& cache);

// An order is as good as the reference's when it loads at most this many times as much.
inline constexpr double kLocalityGate = 1.05;

// m2's GEMM with the epilogues of m4. With swiglu `gemm` is the product before it: gemm.n is 2N.
struct EpilogueProblem {
  GemmProblem gemm;
  GemmTile tile = {};
  bool swiglu = false;
  std::vector<float> topk_weights;  // empty: not weighted
  int cache = 0;  // panels that the modelled cache holds; 0: the order is not judged
  int columns() const { return swiglu ? gemm.n / 2 : gemm.n; }
  int columns_of_tile() const { return swiglu ? tile.block_n / 2 : tile.block_n; }
  TileGrid grid() const {
    return {gemm.num_tokens_post_padded / gemm.block_m,
            (columns() + columns_of_tile() - 1) / columns_of_tile(), tile.group_m};
  }
  int num_programs() const { return static_cast<int>(gemm.expert_ids.size()) * grid().num_pid_n; }
};

// out [T*K, N]; rows without a routed flat id are kUntouched.
judge::Matrix grouped_gemm(const EpilogueProblem& p);

Tile pick_tile(int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

}  // namespace moe::oracle
