// The cases of m2_grouped_gemm and their data.
#pragma once

#include <drills/m2_grouped_gemm.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "judge/random.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m2_grouped_gemm_oracle.h"
#include "routings.h"

namespace moe::m2_cases {

using judge::Bf16;
using judge::Call;
using oracle::GemmProblem;

inline constexpr Bf16 kNan = 0x7fc0;
inline constexpr Bf16 kPoison = 0x7fa5;  // a NaN that no arithmetic makes

enum class Data {
  kExact,     // integers of -2 .. 2: every order of summation gives the same fp32 value
  kPositive,  // integers of 0 .. 2: sums pass 256, where bf16 sums would stop counting
  kNormal,    // normal, scaled so that outputs are near 1
  kSpread,    // magnitudes over eight powers of two from row to row
};

struct GemmCase {
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
  Data data;
  bool refused = false;
  bool stale_tail =
      false;  // tables behind num_tokens_post_padded still hold an older, larger batch
};

inline constexpr Rows kTokens = Rows::kTokens;
inline constexpr Rows kSlots = Rows::kSlots;

inline constexpr GemmCase kCases[] = {
    // tiny: the example of the notes first
    {"tiny", "t4k2", kTokens, 4, 2, 3, 16, 16, 16, Load::kUniform, Data::kExact},
    {"tiny", "t4k2_slots", kSlots, 4, 2, 3, 16, 16, 16, Load::kUniform, Data::kExact},
    {"tiny", "t1k1", kTokens, 1, 1, 1, 8, 8, 16, Load::kUniform, Data::kExact},
    {"tiny", "one_tile", kTokens, 16, 1, 1, 64, 32, 16, Load::kUniform, Data::kExact},
    // edge: one hard thing each
    {"edge", "no_tokens", kTokens, 0, 2, 4, 16, 16, 16, Load::kUniform, Data::kExact},
    {"edge", "top2_tokens", kTokens, 19, 2, 3, 64, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "top2_slots", kSlots, 19, 2, 3, 64, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "n8", kTokens, 9, 2, 4, 8, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "n_tail", kSlots, 21, 2, 4, 72, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "n_tail_long", kTokens, 10, 2, 4, 136, 32, 32, Load::kUniform, Data::kNormal},
    {"edge", "d8", kTokens, 9, 2, 4, 16, 8, 16, Load::kUniform, Data::kExact},
    {"edge", "d_tail", kSlots, 9, 2, 4, 64, 72, 16, Load::kUniform, Data::kNormal},
    {"edge", "d_tail_long", kTokens, 9, 2, 4, 24, 264, 32, Load::kUniform, Data::kExact},
    {"edge", "long_sums", kTokens, 12, 2, 2, 16, 512, 16, Load::kUniform, Data::kPositive},
    {"edge", "every_second_expert_empty", kTokens, 20, 2, 9, 32, 32, 16, Load::kEvenOnly,
     Data::kExact},
    {"edge", "one_expert_named_by_all", kSlots, 20, 2, 4, 32, 32, 16, Load::kOneExpert,
     Data::kExact},
    {"edge", "last_expert_named_by_all", kTokens, 10, 2, 8, 32, 32, 16, Load::kLastExpert,
     Data::kExact},
    {"edge", "first_expert_named_by_all", kSlots, 10, 2, 8, 32, 32, 16, Load::kFirstExpert,
     Data::kExact},
    {"edge", "one_row_each", kTokens, 48, 2, 96, 16, 32, 16, Load::kDescending, Data::kExact},
    {"edge", "nobody_routed", kTokens, 20, 2, 4, 32, 32, 16, Load::kNobody, Data::kExact},
    {"edge", "blocks_without_expert", kSlots, 70, 2, 3, 32, 32, 16, Load::kForeign, Data::kExact},
    {"edge", "ids_out_of_range", kSlots, 24, 3, 6, 32, 32, 16, Load::kUnrouted, Data::kExact},
    {"edge", "nothing_behind_the_end", kTokens, 18, 2, 8, 32, 32, 16, Load::kUniform, Data::kExact,
     false, true},
    {"edge", "k8", kTokens, 10, 8, 16, 32, 48, 16, Load::kUniform, Data::kNormal},
    {"edge", "block32", kSlots, 40, 2, 4, 64, 64, 32, Load::kUniform, Data::kExact},
    {"edge", "block64", kTokens, 70, 2, 3, 64, 64, 64, Load::kUniform, Data::kExact},
    {"edge", "block128", kSlots, 80, 2, 2, 72, 40, 128, Load::kUniform, Data::kExact},
    // random: values that are no integers, magnitudes that differ
    {"random", "tokens", kTokens, 33, 2, 8, 128, 128, 16, Load::kUniform, Data::kNormal},
    {"random", "slots", kSlots, 33, 2, 8, 136, 200, 32, Load::kSkewed, Data::kNormal},
    {"random", "spread", kTokens, 30, 4, 8, 64, 96, 16, Load::kUniform, Data::kSpread},
    {"random", "many_experts", kTokens, 17, 2, 64, 64, 64, 16, Load::kUniform, Data::kNormal},
    // refused: rules of the contract
    {"refused", "n12", kTokens, 4, 2, 3, 12, 16, 16, Load::kUniform, Data::kExact, true},
    {"refused", "d20", kTokens, 4, 2, 3, 16, 20, 16, Load::kUniform, Data::kExact, true},
    {"refused", "block48", kTokens, 4, 2, 3, 16, 16, 48, Load::kUniform, Data::kExact, true},
    {"refused", "k_exceeds_e", kTokens, 4, 4, 3, 16, 16, 16, Load::kAscending, Data::kExact, true},
};

inline std::string shape_of(const GemmCase& c) {
  return std::string(c.rows == kTokens ? "GEMM1" : "GEMM2") + " T=" + std::to_string(c.num_tokens) +
         " K=" + std::to_string(c.top_k) + " E=" + std::to_string(c.num_experts) +
         " N=" + std::to_string(c.n) + " D=" + std::to_string(c.depth) +
         " block_m=" + std::to_string(c.block_m);
}

inline double draw(Data data, int depth, judge::Random& random) {
  if (data == Data::kExact) return random.integer(-2, 2);
  if (data == Data::kPositive) return random.integer(0, 2);
  return random.normal() / std::sqrt(std::sqrt(static_cast<double>(depth)));
}

// Rows and experts that nobody may read hold NaN, so that a missing mask shows at once.
inline GemmProblem make_problem(const GemmCase& c, uint64_t seed) {
  judge::Random random(seed);
  GemmProblem p;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.n = c.n;
  p.depth = c.depth;
  p.block_m = c.block_m;
  p.rows_are_slots = c.rows == kSlots;
  p.stale_tail = c.stale_tail;
  p.exact = c.data == Data::kExact || c.data == Data::kPositive;
  p.topk_ids = make_topk_ids(c.load, c.num_tokens, c.top_k, c.num_experts, random.bits());
  if (std::string(c.name).rfind("t4k2", 0) == 0) p.topk_ids = {0, 1, 1, 2, 0, 2, 1, 0};
  const auto table = oracle::align(p.topk_ids, p.num_tokens, p.top_k, p.num_experts, p.block_m);
  p.sorted_token_ids = table.sorted_token_ids;
  p.expert_ids = table.expert_ids;
  p.num_tokens_post_padded = table.num_tokens_post_padded;
  if (c.load == Load::kForeign) {
    leave_foreign_blocks(p.block_m, p.num_experts, p.sorted_token_ids, p.num_tokens_post_padded,
                         p.expert_ids, p.topk_ids);
  }

  std::set<int> read_rows;
  std::set<int> read_experts;
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    if (!p.routed(flat_id)) continue;
    read_rows.insert(p.rows_are_slots ? flat_id : flat_id / p.top_k);
    read_experts.insert(p.topk_ids[static_cast<size_t>(flat_id)]);
  }
  for (int row = 0; row < p.rows_of_a(); ++row) {
    const double scale = c.data == Data::kSpread ? std::ldexp(1.0, row % 9 - 4) : 1.0;
    for (int d = 0; d < p.depth; ++d) {
      const double value = scale * draw(c.data, p.depth, random);
      p.a.push_back(read_rows.count(row) != 0 ? judge::to_bf16(value) : kNan);
    }
  }
  for (int e = 0; e < p.num_experts; ++e) {
    for (int i = 0; i < p.n * p.depth; ++i) {
      const double value = draw(c.data, p.depth, random);
      p.w.push_back(read_experts.count(e) != 0 ? judge::to_bf16(value) : kNan);
    }
  }
  return p;
}

// Behind the end of the tables: what a larger batch would have left there, all of it legal to look
// at.
inline void leave_stale_tail(const GemmProblem& p,
                             std::vector<int32_t>& ids,
                             std::vector<int32_t>& experts) {
  for (size_t row = static_cast<size_t>(p.num_tokens_post_padded); row < ids.size(); ++row) {
    ids[row] = static_cast<int32_t>(row % static_cast<size_t>(p.num_ids()));
    experts[row / static_cast<size_t>(p.block_m)] = p.topk_ids[0];
  }
}

inline Call call_of(const GemmProblem& p) {
  std::vector<int32_t> ids = p.sorted_token_ids;
  std::vector<int32_t> experts = p.expert_ids;
  if (p.stale_tail) leave_stale_tail(p, ids, experts);
  // What lies behind x in memory: NaN for every row that a flat id used as a row would reach, and
  // for a tile that reads on behind the last row.
  constexpr size_t kTile = 128;
  const size_t behind =
      static_cast<size_t>(p.num_ids() - p.rows_of_a()) * static_cast<size_t>(p.depth) + kTile;
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens, p.top_k,   p.num_experts,           p.n,
                   p.depth,      p.block_m, p.rows_are_slots ? 1 : 0};
  call.buffers = {
      shaped(judge::output<Bf16>("out", static_cast<size_t>(p.num_ids()) * static_cast<size_t>(p.n),
                                 kPoison),
             p.n),
      shaped(judge::input("a", p.a, std::vector<Bf16>(behind, kNan)), p.depth),
      shaped(judge::input("w", p.w, std::vector<Bf16>(kTile, kNan)), p.depth, p.n),
      judge::input("sorted_token_ids", ids),
      judge::input("expert_ids", experts),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  return call;
}

}  // namespace moe::m2_cases
