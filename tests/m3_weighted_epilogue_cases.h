// The cases of m3_weighted_epilogue's functions and their data. Those of the whole layer are in
// layer_cases.h.
#pragma once

#include <drills/m3_weighted_epilogue.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "judge/random.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m3_weighted_epilogue_oracle.h"
#include "routings.h"

namespace moe::m3_cases {

using judge::Bf16;
using judge::Call;
using oracle::CombineProblem;
using oracle::SiluProblem;
using oracle::WeightedProblem;

inline constexpr Bf16 kNan = 0x7fc0;
inline constexpr Bf16 kPoison = 0x7fa5;  // a NaN that no arithmetic makes

// ---- silu_and_mul

enum class Gates {
  kExact,   // multiples of 128, where silu(g) is g or 0
  kNormal,  // normal, times 4
  kTable,   // the hard ones, each with each
};

struct SiluCase {
  const char* group;
  const char* name;
  int num_ids;
  int intermediate_size;
  Gates gates;
  bool refused = false;
};

inline constexpr SiluCase kSiluCases[] = {
    {"tiny", "silu_8x16", 8, 16, Gates::kExact},
    {"edge", "silu_no_rows", 0, 16, Gates::kExact},
    {"edge", "silu_i8", 5, 8, Gates::kExact},
    {"edge", "silu_table", 12, 16, Gates::kTable},
    {"edge", "silu_i1032", 3, 1032, Gates::kExact},
    {"edge", "silu_many_rows", 300, 24, Gates::kExact},
    {"random", "silu", 40, 96, Gates::kNormal},
    {"random", "silu_i2120", 3, 2120, Gates::kNormal},
    {"refused", "silu_i12", 4, 12, Gates::kExact, true},
    {"refused", "silu_rows_below_zero", -1, 16, Gates::kExact, true},
};

// +-0, +-1, +-88, +-104 (e^-g overflows fp32 from 88.7 on), +-the largest number, subnormal, NaN.
inline constexpr Bf16 kTable[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x42b0, 0xc2b0,
                                  0x42d0, 0xc2d0, 0x7f7f, 0xff7f, 0x0001, kNan};

inline SiluProblem make_silu(const SiluCase& c, uint64_t seed) {
  judge::Random random(seed);
  SiluProblem p;
  p.num_ids = std::max(c.num_ids, 0);
  p.intermediate_size = c.intermediate_size;
  p.exact = c.gates == Gates::kExact;
  for (int row = 0; row < p.num_ids; ++row) {
    for (int column = 0; column < 2 * p.intermediate_size; ++column) {
      const bool gate = column < p.intermediate_size;
      double value = gate ? 128 * random.integer(-2, 2) : random.integer(-3, 3);
      if (c.gates == Gates::kNormal) value = (gate ? 4.0 : 1.0) * random.normal();
      p.gate_up.push_back(judge::to_bf16(value));
      // Row r: gate r with every up; columns behind the table are plain numbers.
      const auto up = static_cast<size_t>(column % p.intermediate_size);
      if (c.gates != Gates::kTable || up >= std::size(kTable)) continue;
      p.gate_up.back() = kTable[gate ? static_cast<size_t>(row) : up];
    }
  }
  return p;
}

inline Call call_silu(const SiluCase& c, const SiluProblem& p) {
  Call call;
  call.operation = 0;
  call.integers = {c.num_ids, c.intermediate_size};
  call.buffers = {
      shaped(judge::output<Bf16>("h", p.gate_up.size() / 2, kPoison), c.intermediate_size),
      shaped(judge::input("gate_up", p.gate_up), 2 * c.intermediate_size)};
  return call;
}

// ---- grouped_gemm_weighted

enum class Weights {
  kDistinct,  // 1 + id / 1024: another one for each row, and products with small integers are exact
  kLongSums,  // the same with operands of 0 .. 2: sums pass 256, where bf16 stops counting
  kPowers,    // powers of two
  kRandom,    // in (0, 1), with operands that are no integers
};

struct WeightedCase {
  const char* group;
  const char* name;
  Rows rows;
  int num_tokens;
  int top_k;
  int num_experts;
  int n;
  int depth;
  int block_m;
  Load load;
  Weights weights;
  bool refused = false;
};

inline constexpr Rows kTokens = Rows::kTokens;
inline constexpr Rows kSlots = Rows::kSlots;

inline constexpr WeightedCase kWeightedCases[] = {
    {"tiny", "t4k2", kSlots, 4, 2, 3, 16, 16, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "no_tokens", kSlots, 0, 2, 4, 16, 16, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "k1", kSlots, 10, 1, 3, 24, 32, 16, Load::kUniform, Weights::kPowers},
    {"edge", "rows_are_tokens", kTokens, 19, 2, 3, 64, 64, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "n_tail", kSlots, 21, 2, 4, 72, 64, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "n8_d8", kSlots, 21, 2, 4, 8, 8, 16, Load::kUniform, Weights::kPowers},
    {"edge", "d_tail", kSlots, 9, 2, 4, 64, 264, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "ids_out_of_range", kSlots, 24, 3, 6, 32, 32, 16, Load::kUnrouted, Weights::kDistinct},
    {"edge", "nobody_routed", kSlots, 20, 2, 4, 32, 32, 16, Load::kNobody, Weights::kDistinct},
    {"edge", "blocks_without_expert", kSlots, 70, 2, 3, 32, 32, 16, Load::kForeign,
     Weights::kDistinct},
    {"edge", "one_expert_named_by_all", kSlots, 20, 2, 4, 32, 32, 16, Load::kOneExpert,
     Weights::kDistinct},
    {"edge", "long_sums", kSlots, 12, 2, 2, 16, 512, 16, Load::kUniform, Weights::kLongSums},
    {"edge", "k8", kSlots, 10, 8, 16, 32, 48, 16, Load::kUniform, Weights::kPowers},
    {"edge", "block32", kSlots, 40, 2, 4, 64, 64, 32, Load::kUniform, Weights::kDistinct},
    {"edge", "block64", kSlots, 70, 2, 3, 64, 64, 64, Load::kUniform, Weights::kDistinct},
    {"edge", "block128", kSlots, 80, 2, 2, 72, 40, 128, Load::kUniform, Weights::kDistinct},
    {"random", "weighted", kSlots, 33, 2, 8, 136, 200, 32, Load::kSkewed, Weights::kRandom},
    {"random", "weighted_k4", kSlots, 30, 4, 8, 64, 96, 16, Load::kUniform, Weights::kRandom},
    {"refused", "n12", kSlots, 4, 2, 3, 12, 16, 16, Load::kUniform, Weights::kDistinct, true},
    {"refused", "d20", kSlots, 4, 2, 3, 16, 20, 16, Load::kUniform, Weights::kDistinct, true},
    {"refused", "block48", kSlots, 4, 2, 3, 16, 16, 48, Load::kUniform, Weights::kDistinct, true},
};

inline float draw_weight(Weights weights, int flat_id, judge::Random& random) {
  if (weights == Weights::kDistinct || weights == Weights::kLongSums)
    return 1.0f + static_cast<float>(flat_id) / 1024.0f;
  if (weights == Weights::kPowers) return std::ldexp(1.0f, flat_id % 7 - 4);
  return static_cast<float>(0.02 + 0.98 * random.uniform());
}

// As in m2: what nobody may read is NaN, weights of slots without an expert too.
inline WeightedProblem make_weighted(const WeightedCase& c, uint64_t seed) {
  judge::Random random(seed);
  WeightedProblem p;
  oracle::GemmProblem& g = p.gemm;
  g.num_tokens = c.num_tokens;
  g.top_k = c.top_k;
  g.num_experts = c.num_experts;
  g.n = c.n;
  g.depth = c.depth;
  g.block_m = c.block_m;
  g.rows_are_slots = c.rows == kSlots;
  g.exact = c.weights != Weights::kRandom;
  g.topk_ids = make_topk_ids(c.load, c.num_tokens, c.top_k, c.num_experts, random.bits());
  if (std::string(c.name) == "t4k2") g.topk_ids = {0, 1, 1, 2, 0, 2, 1, 0};
  const auto table = oracle::align(g.topk_ids, g.num_tokens, g.top_k, g.num_experts, g.block_m);
  g.sorted_token_ids = table.sorted_token_ids;
  g.expert_ids = table.expert_ids;
  g.num_tokens_post_padded = table.num_tokens_post_padded;
  if (c.load == Load::kForeign) {
    leave_foreign_blocks(g.block_m, g.num_experts, g.sorted_token_ids, g.num_tokens_post_padded,
                         g.expert_ids, g.topk_ids);
  }
  const double scale = 1.0 / std::sqrt(std::sqrt(static_cast<double>(c.depth)));
  const auto draw = [&](bool read) {
    const int lowest = c.weights == Weights::kLongSums ? 0 : -2;
    const double value = g.exact ? random.integer(lowest, 2) : scale * random.normal();
    return read ? judge::to_bf16(value) : kNan;
  };
  std::vector<bool> row_is_read(static_cast<size_t>(g.rows_of_a()), false);
  for (int flat_id = 0; flat_id < g.num_ids(); ++flat_id) {
    const float weight = draw_weight(c.weights, flat_id, random);
    p.topk_weights.push_back(g.routed(flat_id) ? weight : judge::to_float(kNan));
    const int row = g.rows_are_slots ? flat_id : flat_id / g.top_k;
    if (g.routed(flat_id)) row_is_read[static_cast<size_t>(row)] = true;
  }
  for (const bool read : row_is_read) {
    for (int d = 0; d < g.depth; ++d) g.a.push_back(draw(read));
  }
  for (int e = 0; e < g.num_experts; ++e) {
    const bool read = std::count(g.topk_ids.begin(), g.topk_ids.end(), e) > 0;
    for (int i = 0; i < g.n * g.depth; ++i) g.w.push_back(draw(read));
  }
  return p;
}

inline Call call_weighted(const WeightedProblem& p) {
  const oracle::GemmProblem& g = p.gemm;
  const auto behind =
      static_cast<size_t>(g.num_ids() - g.rows_of_a()) * static_cast<size_t>(g.depth);
  // Behind the weights: NaN for every index that a row of the table or a shifted id would reach.
  const std::vector<float> no_weights(g.sorted_token_ids.size() + 64, judge::to_float(kNan));
  Call call;
  call.operation = 1;
  call.integers = {g.num_tokens, g.top_k,   g.num_experts,           g.n,
                   g.depth,      g.block_m, g.rows_are_slots ? 1 : 0};
  call.buffers = {
      shaped(judge::output<Bf16>("out", static_cast<size_t>(g.num_ids()) * static_cast<size_t>(g.n),
                                 kPoison),
             g.n),
      shaped(judge::input("a", g.a, std::vector<Bf16>(behind, kNan)), g.depth),
      shaped(judge::input("w", g.w), g.depth, g.n),
      judge::input("topk_weights", p.topk_weights, no_weights),
      judge::input("sorted_token_ids", g.sorted_token_ids),
      judge::input("expert_ids", g.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{g.num_tokens_post_padded})};
  return call;
}

// ---- combine

enum class Values {
  kExact,  // integers of -200 .. 200: bf16 holds each, but not their sums
  kNormal,
  kSpread,  // magnitudes over eight powers of two from slot to slot
};

struct CombineCase {
  const char* group;
  const char* name;
  int num_tokens;
  int top_k;
  int num_experts;
  int hidden_size;
  Load load;
  Values values;
  bool refused = false;
};

inline constexpr CombineCase kCombineCases[] = {
    {"tiny", "combine_t3k3", 3, 3, 4, 8, Load::kUniform, Values::kExact},
    {"tiny", "combine_t4k2", 4, 2, 3, 16, Load::kUniform, Values::kExact},
    {"edge", "combine_no_tokens", 0, 2, 3, 16, Load::kUniform, Values::kExact},
    {"edge", "combine_k1", 7, 1, 4, 24, Load::kUniform, Values::kExact},
    {"edge", "combine_k8", 9, 8, 16, 40, Load::kUniform, Values::kExact},
    {"edge", "combine_k32", 3, 32, 40, 16, Load::kUniform, Values::kExact},
    {"edge", "combine_h8", 70, 3, 5, 8, Load::kUniform, Values::kExact},
    {"edge", "combine_h1032", 3, 2, 5, 1032, Load::kUniform, Values::kExact},
    {"edge", "combine_h2120", 2, 3, 5, 2120, Load::kUniform, Values::kExact},
    {"edge", "combine_ids_out_of_range", 40, 3, 6, 32, Load::kUnrouted, Values::kExact},
    {"edge", "combine_nobody_routed", 20, 2, 6, 32, Load::kNobody, Values::kExact},
    {"edge", "combine_most_tokens_empty", 40, 1, 6, 32, Load::kUnrouted, Values::kExact},
    {"random", "combine", 33, 4, 8, 136, Load::kUniform, Values::kNormal},
    {"random", "combine_spread", 21, 8, 16, 64, Load::kUnrouted, Values::kSpread},
    {"refused", "combine_h12", 4, 2, 3, 12, Load::kUniform, Values::kExact, true},
    {"refused", "combine_k_exceeds_e", 4, 4, 3, 16, Load::kAscending, Values::kExact, true},
};

inline CombineProblem make_combine(const CombineCase& c, uint64_t seed) {
  judge::Random random(seed);
  CombineProblem p;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.hidden_size = c.hidden_size;
  p.exact = c.values == Values::kExact;
  p.topk_ids = make_topk_ids(c.load, c.num_tokens, c.top_k, c.num_experts, random.bits());
  for (int flat_id = 0; flat_id < c.num_tokens * c.top_k; ++flat_id) {
    const double scale = c.values == Values::kSpread ? std::ldexp(1.0, flat_id % 9 - 4) : 1.0;
    for (int column = 0; column < c.hidden_size; ++column) {
      const double value = p.exact ? random.integer(-200, 200) : scale * random.normal();
      p.y.push_back(p.routed(flat_id) ? judge::to_bf16(value) : kNan);
    }
  }
  return p;
}

inline Call call_combine(const CombineProblem& p) {
  Call call;
  call.operation = 2;
  call.integers = {p.num_tokens, p.top_k, p.hidden_size, p.num_experts};
  call.buffers = {
      shaped(judge::output<Bf16>("out", p.y.size() / static_cast<size_t>(p.top_k), kPoison),
             p.hidden_size),
      shaped(judge::input("y", p.y), p.hidden_size),
      shaped(judge::input("topk_ids", p.topk_ids), p.top_k)};
  return call;
}

}  // namespace moe::m3_cases
