#include "m4_group_m_bugs.h"

#include <algorithm>

#include "m3_weighted_epilogue_oracle.h"

namespace moe::bugs {

using judge::Matrix;
using judge::Mistake;
using oracle::EpilogueProblem;
using oracle::TileGrid;
using oracle::TilePlace;

const Mistake kCapacityOrder = {
    "M4-CAPACITY", "m4.order", "order",
    "The groups are made of the rows that the worst routing would need: take num_pid_m from "
    "num_tokens_post_padded, on the device."};
const Mistake kExitMissing = {
    "M4-EXIT", "m4.order", "order",
    "Programs at or behind num_pid_m * num_pid_n must leave: pid >= that product, not only pid >."};
const Mistake kNoRows = {"M4-NOROWS", "m4.tile_of", "tile_of",
                         "A division by zero: tile_of makes a group of no rows."};
const Mistake kGroupWidth = {
    "M4-WIDTH", "m4.tile_of", "tile_of",
    "A group spans GROUP_M * num_pid_n programs, not GROUP_M * num_pid_m."};
const Mistake kHostDiffers = {"M4-HOST", "m4.tile_of", "tile_of",
                              "tile_of called on the host does not give every tile once."};
const Mistake kPoorOrder = {"M4-LOCALITY", "m4.tile_of", "tile_of",
                            "Every tile once, but in an order that loads too much into the cache."};
const Mistake kEpilogueOffset32 = {
    "M4-INT32", "m4.order", "order",
    "expert * N * D, or a row times its length, does not fit 32 bits: form it in int64_t."};

namespace {

// The parts of the right formula, to be combined wrongly.
struct Place {
  int first_m;  // first row of the group
  int rows;     // of the group
  int pid_in_group;
};

Place place_of(int pid, const TileGrid& g) {
  const int programs = g.group_m * g.num_pid_n;
  const int first_m = pid / programs * g.group_m;
  return {first_m, std::min(g.num_pid_m - first_m, g.group_m), pid % programs};
}

std::vector<OrderModel> make_order_models() {
  std::vector<OrderModel> models;
  const auto add = [&](const char* code, const char* sentence, auto tile_of) {
    models.push_back({{code, "m4.tile_of", "tile_of", sentence}, tile_of});
  };
  add("M4-SAME", "Every program works on the first tile.", [](int, const TileGrid&) -> TilePlace {
    return {0, 0};
  });
  add("M4-ROWMAJOR",
      "GROUP_M has no effect: tiles run row by row. Inside a group pid_m must vary fastest.",
      [](int pid, const TileGrid& g) -> TilePlace {
        return {pid / g.num_pid_n, pid % g.num_pid_n};
      });
  add("M4-COLMAJOR", "Tiles run column by column over the whole grid: no group ends.",
      [](int pid, const TileGrid& g) -> TilePlace {
        return {pid % g.num_pid_m, pid / g.num_pid_m};
      });
  add("M4-NOMIN",
      "The last group has fewer rows when num_pid_m is not a multiple of group_m: take the "
      "minimum.",
      [](int pid, const TileGrid& g) -> TilePlace {
        const Place p = place_of(pid, g);
        return {p.first_m + p.pid_in_group % g.group_m, p.pid_in_group / g.group_m};
      });
  add("M4-NDIV", "pid_n divides by GROUP_M: divide by the actual number of rows of the group.",
      [](int pid, const TileGrid& g) -> TilePlace {
        const Place p = place_of(pid, g);
        return {p.first_m + p.pid_in_group % p.rows, p.pid_in_group / g.group_m};
      });
  models.push_back({kGroupWidth, [](int pid, const TileGrid& g) -> TilePlace {
                      const int programs = g.group_m * g.num_pid_m;
                      const int first_m = pid / programs * g.group_m;
                      const int rows = std::max(std::min(g.num_pid_m - first_m, g.group_m), 1);
                      return {first_m + pid % programs % rows, pid % programs / rows};
                    }});
  add("M4-SWAPPED", "pid_m and pid_n are exchanged.", [](int pid, const TileGrid& g) -> TilePlace {
    const TilePlace right = oracle::tile_of(pid, g);
    return {right.n, right.m};
  });
  add("M4-TRANSPOSED",
      "The roles of num_pid_m and num_pid_n are exchanged: groups are made of columns.",
      [](int pid, const TileGrid& g) -> TilePlace {
        const TilePlace other = oracle::tile_of(pid, {g.num_pid_n, g.num_pid_m, g.group_m});
        return {other.n, other.m};
      });
  add("M4-FIRSTROW", "The first row of a group is the number of the group times GROUP_M.",
      [](int pid, const TileGrid& g) -> TilePlace {
        const int group = pid / (g.group_m * g.num_pid_n);
        const int rows = std::max(std::min(g.num_pid_m - group, g.group_m), 1);
        const int pid_in_group = pid % (g.group_m * g.num_pid_n);
        return {group + pid_in_group % rows, pid_in_group / rows};
      });
  add("M4-FIRSTROW", "The first row of a group is the number of the group times GROUP_M.",
      [](int pid, const TileGrid& g) -> TilePlace {
        const Place p = place_of(pid, g);
        return {pid / (g.group_m * g.num_pid_n) + p.pid_in_group % p.rows, p.pid_in_group / p.rows};
      });
  add("M4-FALLBACK",
      "Grouping is lost when num_pid_m is not a multiple of GROUP_M: only the last group is "
      "smaller.",
      [](int pid, const TileGrid& g) -> TilePlace {
        if (g.num_pid_m % g.group_m == 0) return oracle::tile_of(pid, g);
        return {pid / g.num_pid_n, pid % g.num_pid_n};
      });
  add("M4-FULLPID", "pid_n comes from the full pid: take the remainder inside the group first.",
      [](int pid, const TileGrid& g) -> TilePlace {
        const Place p = place_of(pid, g);
        return {p.first_m + pid % p.rows, pid / p.rows};
      });
  for (const int fixed : {4, 8, 16}) {
    add("M4-FIXED", "The groups have a fixed number of rows: use group_m.",
        [fixed](int pid, const TileGrid& g) -> TilePlace {
          return oracle::tile_of(pid, {g.num_pid_m, g.num_pid_n, fixed});
        });
  }
  return models;
}

std::vector<judge::MatrixModel<EpilogueProblem>> make_epilogue_models() {
  std::vector<judge::MatrixModel<EpilogueProblem>> models;
  models.push_back(
      {{"M4-NOTHING", "m4.order", "order", "out was never written."}, [](const EpilogueProblem& p) {
         Matrix out = oracle::grouped_gemm(p);
         std::fill(out.values.begin(), out.values.end(), judge::kUntouched);
         return out;
       }});
  models.push_back({{"M4-ZERO", "m4.multiply", "multiply",
                     "The output is zero everywhere: nothing was accumulated."},
                    [](const EpilogueProblem& p) {
                      Matrix out = oracle::grouped_gemm(p);
                      for (double& value : out.values) {
                        if (value != judge::kUntouched) value = 0.0;
                      }
                      return out;
                    }});
  models.push_back({{"M4-NOWEIGHT", "m4.store", "store", "The weights are not applied."},
                    [](const EpilogueProblem& p) {
                      EpilogueProblem q = p;
                      q.topk_weights.clear();
                      return oracle::grouped_gemm(q);
                    }});
  models.push_back({{"M4-SILUONUP", "m4.store", "store", "SiLU belongs to the gate half."},
                    [](const EpilogueProblem& p) {
                      if (!p.swiglu) return oracle::grouped_gemm(p);
                      const Matrix product = oracle::grouped_gemm(p.gemm);
                      Matrix out = {product.rows, p.columns(), {}};
                      for (int64_t row = 0; row < out.rows; ++row) {
                        for (int n = 0; n < out.columns; ++n) {
                          const double gate = product.at(row, n);
                          out.values.push_back(
                              gate == judge::kUntouched
                                  ? gate
                                  : gate * oracle::silu(product.at(row, out.columns + n)));
                        }
                      }
                      return out;
                    }});
  return models;
}

// The rule of the header, with other rows of an average expert.
Tile pick_by_rows(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size, int rows) {
  if (num_tokens <= num_experts) return kFewTokensTile;
  Tile tile = kFewTokensTile;
  for (const DefaultTile& line : kDefaultTiles) {
    if (line.rows_per_expert <= rows) tile = line.tile;
  }
  for (const TunedTile& line : kTunedTiles) {
    if (line.num_experts == num_experts && line.top_k == top_k && line.hidden_size == hidden_size &&
        line.intermediate_size == intermediate_size && line.num_tokens <= num_tokens) {
      tile = line.tile;
    }
  }
  return tile;
}

std::vector<PickModel> make_pick_models() {
  std::vector<PickModel> models;
  const auto add = [&](const char* code, const char* sentence, auto pick) {
    models.push_back({{code, "m4.pick_tile", "pick_tile", sentence}, pick});
  };
  add("M4-PICKFEW", "The tile for few tokens is picked always.",
      [](int, int, int, int, int) { return kFewTokensTile; });
  // T = E, or all T <= E, go on to the tables: as if there were no such rule.
  for (const bool only_equal : {true, false}) {
    add("M4-PICKRULE", "T <= E gives kFewTokensTile whatever the tables say, T = E included.",
        [only_equal](int t, int e, int k, int h, int i) {
          if (t > e || (only_equal && t < e)) return oracle::pick_tile(t, e, k, h, i);
          return pick_by_rows(e + 1, e, k, h, i, t * k / e);
        });
  }
  add("M4-PICKTUNED", "A line of kTunedTiles for this layer goes before kDefaultTiles.",
      [](int t, int e, int k, int, int) { return pick_by_rows(t, e, k, 0, 0, t * k / e); });
  add("M4-PICKLAYER", "A line of kTunedTiles counts only where E, K, H and I are all equal.",
      [](int t, int e, int k, int h, int i) {
        Tile tile = oracle::pick_tile(t, e, k, h, i);
        for (const TunedTile& line : kTunedTiles) {
          if (t > e && line.num_experts == e && line.num_tokens <= t) tile = line.tile;
        }
        return tile;
      });
  add("M4-PICKROWS", "The rows of an average expert are T*K/E; K is missing.",
      [](int t, int e, int k, int h, int i) { return pick_by_rows(t, e, k, h, i, t / e); });
  add("M4-PICKROWS", "The rows of an average expert are T*K/E; E is missing.",
      [](int t, int e, int k, int h, int i) { return pick_by_rows(t, e, k, h, i, t * k); });
  return models;
}

}  // namespace

const std::vector<OrderModel>& order_models() {
  static const std::vector<OrderModel> models = make_order_models();
  return models;
}

const std::vector<judge::MatrixModel<EpilogueProblem>>& epilogue_models() {
  static const std::vector<judge::MatrixModel<EpilogueProblem>> models = make_epilogue_models();
  return models;
}

const std::vector<PickModel>& pick_models() {
  static const std::vector<PickModel> models = make_pick_models();
  return models;
}

}  // namespace moe::bugs
