// The cases of m4_group_m and their data.
#pragma once

#include <drills/m4_group_m.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "judge/random.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m4_group_m_oracle.h"
#include "routings.h"

namespace moe::m4_cases {

using judge::Bf16;
using oracle::EpilogueProblem;

inline constexpr Bf16 kNan = 0x7fc0;
inline constexpr Bf16 kPoison = 0x7fa5;
inline constexpr int32_t kNoTile = -7777777;  // poison of orders

// ---- tile_of

struct OrderCase {
  const char* group;
  const char* name;
  int min_m, max_m;
  int min_n, max_n;
  int group_m;
  int cache = 0;  // panels; 0: any order that has every tile once is right
  bool refused = false;
};

inline constexpr OrderCase kOrderCases[] = {
    {"tiny", "order_5x3_group2", 5, 5, 3, 3, 2},
    {"tiny", "order_1x2_group2", 1, 1, 2, 2, 2},
    {"edge", "order_7x1_group4", 7, 7, 1, 1, 4},
    {"edge", "order_10x6_group4", 10, 10, 6, 6, 4},
    {"edge", "order_3x2_group_2_to_the_31", 3, 3, 2, 2, INT32_MAX},
    {"edge", "order_all_grids_group1", 1, 24, 1, 24, 1},
    {"edge", "order_all_grids_group2", 1, 24, 1, 24, 2},
    {"edge", "order_all_grids_group3", 1, 24, 1, 24, 3},
    {"edge", "order_all_grids_group4", 1, 24, 1, 24, 4},
    {"edge", "order_all_grids_group5", 1, 24, 1, 24, 5},
    {"edge", "order_all_grids_group6", 1, 24, 1, 24, 6},
    {"edge", "order_all_grids_group7", 1, 24, 1, 24, 7},
    {"edge", "order_all_grids_group8", 1, 24, 1, 24, 8},
    {"edge", "order_all_grids_group9", 1, 24, 1, 24, 9},
    // more panels than the cache holds: here the order counts
    {"edge", "order_cached_63_and_64x48_group8", 63, 64, 48, 48, 8, 16},
    {"edge", "order_cached_40x64_group12", 40, 40, 64, 64, 12, 20},
    {"edge", "order_cached_50x40_group3", 50, 50, 40, 40, 3, 8},
    {"refused", "order_group0", 2, 2, 2, 2, 0, 0, true},
};

// ---- grouped_gemm

enum class Data {
  kExact,   // integers of -2 .. 2, weights powers of two: every order of summation gives one value
  kGates,   // for SwiGLU: gates of 32 and more, where silu(gate) is gate in fp32; all else integers
  kNormal,  // normal, scaled so that outputs are near 1
  kSpread,  // magnitudes over eight powers of two from row to row
};

enum class Epilogue { kPlain, kWeighted, kSwiglu };

struct GemmCase {
  const char* group;
  const char* name;
  Rows rows;
  int num_tokens, top_k, num_experts, n, depth;
  TileShape shape;
  int group_m;
  Load load;
  Data data;
  Epilogue epilogue;
  int cache = 0;  // panels that the modelled cache holds; 0: the order is not judged
  bool refused = false;

  bool swiglu() const { return epilogue == Epilogue::kSwiglu; }
};

inline constexpr Rows kTokens = Rows::kTokens;
inline constexpr Rows kSlots = Rows::kSlots;
inline constexpr Epilogue kPlain = Epilogue::kPlain;
inline constexpr Epilogue kWeighted = Epilogue::kWeighted;
inline constexpr Epilogue kSwiglu = Epilogue::kSwiglu;
inline constexpr Load kUniform = Load::kUniform;
inline constexpr Data kExact = Data::kExact;
inline constexpr Data kNormal = Data::kNormal;
inline constexpr TileShape k16 = {16, 32, 64};
inline constexpr TileShape k32 = {32, 64, 64};
inline constexpr TileShape k64 = {64, 128, 64};
inline constexpr TileShape k64x256 = {64, 256, 32};
inline constexpr TileShape k128x32 = {128, 128, 32};
inline constexpr TileShape k128 = {128, 128, 64};
inline constexpr TileShape k128x256 = {128, 256, 64};

// clang-format off: one case a line
inline constexpr GemmCase kGemmCases[] = {
    //                               T  K  E   N   D  tile GROUP_M
    {"tiny", "t4k2", kTokens, 4, 2, 3, 16, 16, k16, 1, kUniform, kExact, kPlain},
    {"tiny", "t4k2_weighted", kSlots, 4, 2, 3, 16, 16, k16, 2, kUniform, kExact, kWeighted},
    {"tiny", "t4k2_swiglu", kTokens, 4, 2, 3, 16, 16, k16, 2, kUniform, kNormal, kSwiglu},
    {"edge", "no_tokens", kTokens, 0, 2, 4, 16, 16, k16, 2, kUniform, kExact, kPlain},
    {"edge", "several_groups", kTokens, 60, 2, 3, 104, 32, k16, 3, kUniform, kExact, kPlain},
    {"edge", "one_large_group", kSlots, 60, 2, 3, 104, 32, k16, 100, kUniform, kExact, kWeighted},
    {"edge", "n8_d8", kTokens, 21, 2, 4, 8, 8, k16, 4, kUniform, kExact, kPlain},
    {"edge", "d_tail", kSlots, 9, 2, 4, 72, 264, k16, 4, kUniform, kExact, kPlain},
    {"edge", "swiglu_exact", kTokens, 19, 2, 3, 40, 64, k16, 2, kUniform, Data::kGates, kSwiglu},
    {"edge", "swiglu_n8", kTokens, 19, 2, 3, 8, 72, k16, 2, kUniform, kNormal, kSwiglu},
    {"edge", "k8_weighted", kSlots, 10, 8, 16, 32, 48, k16, 4, kUniform, kExact, kWeighted},
    {"edge", "every_second_expert_empty", kTokens, 20, 2, 9, 32, 32, k16, 2, Load::kEvenOnly,
     kExact, kPlain},
    {"edge", "one_expert_named_by_all", kSlots, 20, 2, 4, 32, 32, k16, 2, Load::kOneExpert, kExact,
     kPlain},
    {"edge", "last_expert_named_by_all", kTokens, 16, 1, 8, 32, 32, k16, 2, Load::kLastExpert,
     kExact, kPlain},
    {"edge", "nobody_routed", kTokens, 20, 2, 4, 32, 32, k16, 2, Load::kNobody, kExact, kPlain},
    {"edge", "blocks_without_expert", kSlots, 70, 2, 3, 72, 32, k16, 3, Load::kForeign, kExact,
     kWeighted},
    {"edge", "ids_out_of_range", kSlots, 50, 3, 6, 72, 32, k16, 4, Load::kUnrouted, kExact, kPlain},
    // more panels of W than the cache holds, and a grid made for twice as many rows
    {"edge", "weights_exceed_cache", kTokens, 150, 2, 3, 512, 16, k16, 5, kUniform, kExact, kPlain,
     10},
    {"edge", "few_rows_of_a_large_grid", kTokens, 150, 2, 3, 512, 16, k16, 5, Load::kUnrouted,
     kExact, kPlain, 10},
    {"edge", "tile_32", kSlots, 40, 2, 3, 136, 72, k32, 2, kUniform, kExact, kWeighted},
    {"edge", "tile_64", kTokens, 70, 2, 3, 200, 136, k64, 2, kUniform, kExact, kPlain},
    {"edge", "tile_64x256", kSlots, 70, 2, 2, 264, 72, k64x256, 2, kUniform, kExact, kPlain},
    {"edge", "tile_128x32", kSlots, 100, 2, 2, 136, 40, k128x32, 2, kUniform, kExact, kPlain},
    {"edge", "tile_128", kTokens, 100, 2, 2, 136, 264, k128, 2, kUniform, kExact, kPlain},
    {"edge", "tile_128x256", kSlots, 100, 2, 2, 264, 72, k128x256, 1, kUniform, kExact, kPlain},
    {"random", "swiglu_tile_32", kTokens, 40, 2, 3, 72, 72, k32, 2, kUniform, kNormal, kSwiglu},
    {"random", "swiglu_tile_64", kTokens, 70, 2, 3, 72, 136, k64, 2, kUniform, kNormal, kSwiglu},
    {"random", "swiglu_tile_64x256", kTokens, 70, 2, 2, 136, 72, k64x256, 2, kUniform, kNormal,
     kSwiglu},
    {"random", "swiglu_tile_128x32", kTokens, 70, 2, 2, 72, 72, k128x32, 2, kUniform, kNormal,
     kSwiglu},
    {"random", "swiglu_tile_128", kTokens, 100, 2, 2, 72, 136, k128, 2, Load::kSkewed, kNormal,
     kSwiglu},
    {"random", "swiglu_tile_128x256", kTokens, 70, 2, 2, 136, 72, k128x256, 2, kUniform, kNormal,
     kSwiglu},
    {"random", "weighted", kSlots, 33, 2, 8, 136, 200, k32, 3, Load::kSkewed, kNormal, kWeighted},
    {"random", "spread", kTokens, 30, 4, 8, 64, 96, k16, 4, kUniform, Data::kSpread, kPlain},
    {"refused", "n12", kTokens, 4, 2, 3, 12, 16, k16, 1, kUniform, kExact, kPlain, 0, true},
    {"refused", "d20", kTokens, 4, 2, 3, 16, 20, k16, 1, kUniform, kExact, kPlain, 0, true},
    {"refused", "group0", kTokens, 4, 2, 3, 16, 16, k16, 0, kUniform, kExact, kPlain, 0, true},
    {"refused",
     "other_tile",
     kTokens,
     4,
     2,
     3,
     16,
     16,
     {16, 48, 64},
     1,
     kUniform,
     kExact,
     kPlain,
     0,
     true},
    {"refused", "k_exceeds_e", kTokens, 4, 4, 3, 16, 16, k16, 1, Load::kAscending, kExact, kPlain,
     0, true},
};
// clang-format on

inline std::string shape_of(const GemmCase& c) {
  return std::string(c.rows == kTokens ? "GEMM1" : "GEMM2") + (c.swiglu() ? " with SwiGLU" : "") +
         " T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
         " E=" + std::to_string(c.num_experts) + " N=" + std::to_string(c.n) +
         " D=" + std::to_string(c.depth) + " tile=" + std::to_string(c.shape.block_m) + "x" +
         std::to_string(c.shape.block_n) + "x" + std::to_string(c.shape.block_k) +
         " group_m=" + std::to_string(c.group_m);
}

// One value of A or of row `row` of w[expert].
inline double draw(const GemmCase& c, bool of_gate, bool of_a, judge::Random& random) {
  if (c.data == Data::kGates) return of_gate || of_a ? random.integer(1, 2) : random.integer(-2, 2);
  if (c.data == kExact) return random.integer(-2, 2);
  return random.normal() / std::sqrt(std::sqrt(static_cast<double>(c.depth)));
}

inline void draw_operands(const GemmCase& c, EpilogueProblem& p, judge::Random& random) {
  oracle::GemmProblem& g = p.gemm;
  std::set<int> read_rows;
  std::set<int> read_experts;
  for (int flat_id = 0; flat_id < g.num_ids(); ++flat_id) {
    if (!g.routed(flat_id)) continue;
    read_rows.insert(g.rows_are_slots ? flat_id : flat_id / g.top_k);
    read_experts.insert(g.topk_ids[static_cast<size_t>(flat_id)]);
  }
  for (int row = 0; row < g.rows_of_a(); ++row) {
    const double scale = c.data == Data::kSpread ? std::ldexp(1.0, row % 9 - 4) : 1.0;
    for (int d = 0; d < g.depth; ++d) {
      const double value = scale * draw(c, false, true, random);
      g.a.push_back(read_rows.count(row) != 0 ? judge::to_bf16(value) : kNan);
    }
  }
  for (int e = 0; e < g.num_experts; ++e) {
    for (int row = 0; row < g.n; ++row) {
      for (int d = 0; d < g.depth; ++d) {
        const double value = draw(c, row < c.n, false, random);
        g.w.push_back(read_experts.count(e) != 0 ? judge::to_bf16(value) : kNan);
      }
    }
  }
}

// As in m2: rows and experts that nobody may read hold NaN, weights of unrouted slots too.
inline EpilogueProblem make_problem(const GemmCase& c, uint64_t seed) {
  judge::Random random(seed);
  EpilogueProblem p;
  oracle::GemmProblem& g = p.gemm;
  g.num_tokens = c.num_tokens;
  g.top_k = c.top_k;
  g.num_experts = c.num_experts;
  g.n = c.swiglu() ? 2 * c.n : c.n;
  g.depth = c.depth;
  g.block_m = c.shape.block_m;
  g.rows_are_slots = c.rows == kSlots;
  g.exact = c.data == kExact || c.data == Data::kGates;
  p.tile = {c.shape.block_n, c.shape.block_k, c.group_m};
  p.swiglu = c.swiglu();
  p.cache = c.cache;
  g.topk_ids = make_topk_ids(c.load, c.num_tokens, c.top_k, c.num_experts, random.bits());
  if (std::string(c.name).rfind("t4k2", 0) == 0) g.topk_ids = {0, 1, 1, 2, 0, 2, 1, 0};
  const auto table = oracle::align(g.topk_ids, g.num_tokens, g.top_k, g.num_experts, g.block_m);
  g.sorted_token_ids = table.sorted_token_ids;
  g.expert_ids = table.expert_ids;
  g.num_tokens_post_padded = table.num_tokens_post_padded;
  if (c.load == Load::kForeign) {
    leave_foreign_blocks(g.block_m, g.num_experts, g.sorted_token_ids, g.num_tokens_post_padded,
                         g.expert_ids, g.topk_ids);
  }
  for (int flat_id = 0; c.epilogue == kWeighted && flat_id < g.num_ids(); ++flat_id) {
    const double weight =
        g.exact ? std::ldexp(1.0, flat_id % 7 - 4) : 0.02 + 0.98 * random.uniform();
    p.topk_weights.push_back(g.routed(flat_id) ? static_cast<float>(weight)
                                               : judge::to_float(kNan));
  }
  draw_operands(c, p, random);
  return p;
}

inline judge::Call call_gemm(const EpilogueProblem& p) {
  const oracle::GemmProblem& g = p.gemm;
  // What lies behind x in memory: NaN for every row that a flat id used as a row would reach.
  const auto behind =
      static_cast<size_t>(g.num_ids() - g.rows_of_a()) * static_cast<size_t>(g.depth);
  judge::Call call;
  call.operation = 0;
  call.integers = {
      g.num_tokens,    g.top_k,        g.num_experts,  p.columns(),    g.depth,
      g.block_m,       p.tile.block_n, p.tile.block_k, p.tile.group_m, g.rows_are_slots ? 1 : 0,
      p.swiglu ? 1 : 0};
  call.buffers = {
      shaped(
          judge::output<Bf16>(
              "out", static_cast<size_t>(g.num_ids()) * static_cast<size_t>(p.columns()), kPoison),
          p.columns()),
      shaped(judge::output<int32_t>("trace", 2 * static_cast<size_t>(p.num_programs()), kNoTile),
             2),
      shaped(judge::input("a", g.a, std::vector<Bf16>(behind, kNan)), g.depth),
      shaped(judge::input("w", g.w), g.depth, g.n),
      judge::input("topk_weights", p.topk_weights),
      judge::input("sorted_token_ids", g.sorted_token_ids),
      judge::input("expert_ids", g.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{g.num_tokens_post_padded})};
  call.buffers[4].null = p.topk_weights.empty();
  return call;
}

}  // namespace moe::m4_cases
