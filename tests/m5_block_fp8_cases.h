// The cases of m5_block_fp8's GEMM and their data.
#pragma once

#include <drills/m5_block_fp8.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "judge/random.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m5_block_fp8_bugs.h"
#include "m5_block_fp8_oracle.h"
#include "routings.h"

namespace moe::m5_cases {

using judge::Bf16;
using judge::Call;
using judge::Fp32;
using judge::Fp8;
using oracle::Fp8GemmProblem;

inline constexpr Bf16 kPoisonBf16 = 0x7fa5;  // NaNs that no arithmetic makes
inline constexpr Fp32 kPoisonFp32 = bugs::kPoisonBits;

enum class Data {
  kOnes,   // the example of the contract: codes of 1, A scales 1, 2, ...
  kExact,  // integers of -2 .. 2, scales of powers of two: every order of sums gives the same fp32
  kPositive,  // integers of 0 .. 2, scale 1: sums pass 256, where bf16 sums would stop counting
  kNormal,    // random codes, scales near 1
  kDecades,   // scales over six decades, from block to block
  kNan,       // as kNormal, with a NaN code in every third row of A
};
enum class Out { kBf16, kFp32 };
enum class Weights { kNone, kGiven };

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
  Out out = Out::kFp32;
  Weights weights = Weights::kNone;
  bool refused = false;
};

inline constexpr Rows kTokens = Rows::kTokens;
inline constexpr Rows kSlots = Rows::kSlots;
inline constexpr Load kUniform = Load::kUniform;
inline constexpr Out kBf16 = Out::kBf16;
inline constexpr Out kFp32 = Out::kFp32;
inline constexpr Weights kGiven = Weights::kGiven;
inline constexpr Weights kNone = Weights::kNone;

inline constexpr GemmCase kCases[] = {
    {"tiny", "ones_384", kTokens, 1, 1, 1, 8, 256, 16, kUniform, Data::kOnes},
    {"tiny", "t4k2", kTokens, 4, 2, 3, 16, 256, 16, kUniform, Data::kExact},
    {"tiny", "t4k2_slots", kSlots, 4, 2, 3, 16, 256, 16, kUniform, Data::kExact},
    {"tiny", "one_block", kTokens, 16, 1, 1, 128, 128, 16, kUniform, Data::kExact, kBf16},
    {"edge", "no_tokens", kTokens, 0, 2, 4, 16, 128, 16, kUniform, Data::kExact},
    {"edge", "top2_tokens", kTokens, 19, 2, 3, 64, 384, 16, kUniform, Data::kExact},
    {"edge", "top2_slots", kSlots, 19, 2, 3, 64, 384, 16, kUniform, Data::kExact},
    {"edge", "d16", kTokens, 9, 2, 4, 16, 16, 16, kUniform, Data::kExact},
    {"edge", "d_tail", kSlots, 9, 2, 4, 64, 400, 16, kUniform, Data::kExact},
    {"edge", "d_tail_short", kTokens, 9, 2, 4, 64, 144, 16, kUniform, Data::kDecades},
    {"edge", "n8", kTokens, 9, 2, 4, 8, 256, 16, kUniform, Data::kExact, kBf16},
    {"edge", "n_tail", kSlots, 15, 2, 4, 192, 256, 16, kUniform, Data::kExact},
    {"edge", "n_tail_long", kTokens, 10, 2, 4, 264, 256, 32, kUniform, Data::kDecades, kBf16},
    {"edge", "seam", kTokens, 8, 2, 2, 384, 256, 16, kUniform, Data::kExact},
    {"edge", "weighted_tokens", kTokens, 12, 2, 3, 32, 256, 16, kUniform, Data::kExact, kFp32,
     kGiven},
    {"edge", "weighted_slots", kSlots, 12, 3, 5, 32, 256, 16, kUniform, Data::kNormal, kBf16,
     kGiven},
    {"edge", "long_sums", kTokens, 12, 2, 2, 16, 1024, 16, kUniform, Data::kPositive},
    {"edge", "every_second_expert_empty", kTokens, 20, 2, 9, 32, 128, 16, Load::kEvenOnly,
     Data::kExact, kBf16},
    {"edge", "one_expert_named_by_all", kSlots, 20, 2, 4, 32, 256, 16, Load::kOneExpert,
     Data::kExact},
    {"edge", "last_expert_named_by_all", kTokens, 10, 2, 8, 32, 256, 16, Load::kLastExpert,
     Data::kExact},
    {"edge", "nobody_routed", kTokens, 20, 2, 4, 32, 128, 16, Load::kNobody, Data::kExact},
    {"edge", "blocks_without_expert", kSlots, 70, 2, 3, 32, 128, 16, Load::kForeign, Data::kExact},
    {"edge", "ids_out_of_range", kSlots, 24, 3, 6, 32, 128, 16, Load::kUnrouted, Data::kExact},
    {"edge", "nan_codes", kTokens, 12, 2, 3, 32, 256, 16, kUniform, Data::kNan},
    {"edge", "block32", kSlots, 40, 2, 4, 72, 256, 32, kUniform, Data::kExact},
    {"edge", "block64", kTokens, 70, 2, 3, 136, 256, 64, kUniform, Data::kExact, kBf16},
    {"edge", "block128", kSlots, 80, 2, 2, 72, 272, 128, kUniform, Data::kExact},
    {"edge", "more_rows_of_tiles_than_a_group", kTokens, 60, 2, 40, 136, 144, 16, kUniform,
     Data::kDecades},
    {"random", "tokens", kTokens, 33, 2, 8, 128, 512, 16, kUniform, Data::kDecades},
    {"random", "slots", kSlots, 33, 2, 8, 136, 400, 32, Load::kSkewed, Data::kDecades, kBf16},
    {"random", "fraction_scales", kTokens, 20, 2, 4, 136, 400, 16, kUniform, Data::kNormal},
    {"random", "d4096", kTokens, 9, 2, 4, 16, 4096, 16, kUniform, Data::kNormal},
    {"random", "d7168", kSlots, 3, 2, 4, 8, 7168, 16, kUniform, Data::kNormal},
    {"refused", "n12", kTokens, 4, 2, 3, 12, 128, 16, kUniform, Data::kExact, kFp32, kNone, true},
    {"refused", "d24", kTokens, 4, 2, 3, 16, 24, 16, kUniform, Data::kExact, kFp32, kNone, true},
    {"refused", "block48", kTokens, 4, 2, 3, 16, 128, 48, kUniform, Data::kExact, kFp32, kNone,
     true},
    {"refused", "k_exceeds_e", kTokens, 4, 4, 3, 16, 128, 16, Load::kAscending, Data::kExact, kFp32,
     kNone, true},
};

inline std::string shape_of(const GemmCase& c) {
  return std::string(c.rows == kTokens ? "GEMM1" : "GEMM2") + " T=" + std::to_string(c.num_tokens) +
         " K=" + std::to_string(c.top_k) + " E=" + std::to_string(c.num_experts) +
         " N=" + std::to_string(c.n) + " D=" + std::to_string(c.depth) +
         " block_m=" + std::to_string(c.block_m) + (c.out == Out::kFp32 ? " fp32" : " bf16");
}

// ---- Data

inline Fp8 draw_code(Data data, judge::Random& random) {
  if (data == Data::kOnes) return judge::to_e4m3(1.0);
  if (data == Data::kExact) return judge::to_e4m3(random.integer(-2, 2));
  if (data == Data::kPositive) return judge::to_e4m3(random.integer(0, 2));
  return judge::to_e4m3(random.normal() * 100.0);  // up to +-448 now and then
}

inline float draw_scale(Data data, int block, bool of_a, judge::Random& random) {
  if (data == Data::kOnes) return of_a ? static_cast<float>(block + 1) : 1.0f;
  if (data == Data::kPositive) return 1.0f;
  if (data == Data::kExact) return std::ldexp(1.0f, random.integer(-3, 3));
  if (data == Data::kDecades)
    return static_cast<float>(std::pow(10.0, 6.0 * random.uniform() - 3.0));
  return static_cast<float>(0.003 * (0.5 + random.uniform()));
}

// Codes and scales of one array; rows that nobody may read hold NaN, codes and scales alike.
inline void fill(Data data,
                 int num_rows,
                 int depth,
                 int rows_per_matrix,
                 bool of_a,
                 const std::set<int>& read,
                 judge::Random& random,
                 std::vector<Fp8>& codes,
                 std::vector<float>& scales) {
  for (int row = 0; row < num_rows; ++row) {
    const bool used = read.count(row / rows_per_matrix) != 0;
    for (int d = 0; d < depth; ++d) {
      const Fp8 code = draw_code(data, random);
      codes.push_back(used ? code : judge::kE4m3Nan);
    }
    if (row % rows_per_matrix % 128 != 0) continue;  // a row of W in the middle of a scale block
    for (int block = 0; block < (depth + 127) / 128; ++block) {
      const float scale = draw_scale(data, block, of_a, random);
      scales.push_back(used ? scale : std::numeric_limits<float>::quiet_NaN());
    }
  }
}

inline void spoil_rows(Fp8GemmProblem& p, judge::Random& random) {
  for (int row = 0; row < p.rows_of_a(); row += 3) {
    const auto place = static_cast<size_t>(row) * static_cast<size_t>(p.depth);
    const auto offset = static_cast<size_t>(random.integer(0, p.depth - 1));
    p.a_codes[place + offset] = random.integer(0, 1) == 0 ? Fp8{0x7f} : Fp8{0xff};
  }
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    p.nan_rows.push_back(p.row_of(flat_id) % 3 == 0 ? 1 : 0);
  }
}

inline Fp8GemmProblem make_problem(const GemmCase& c, uint64_t seed) {
  judge::Random random(seed);
  Fp8GemmProblem p;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.n = c.n;
  p.depth = c.depth;
  p.block_m = c.block_m;
  p.rows_are_slots = c.rows == kSlots;
  p.out_fp32 = c.out == Out::kFp32;
  p.exact = c.data == Data::kOnes || c.data == Data::kExact || c.data == Data::kPositive;
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
    read_rows.insert(p.row_of(flat_id));
    read_experts.insert(p.expert_of(flat_id));
  }
  fill(c.data, p.rows_of_a(), p.depth, 1, true, read_rows, random, p.a_codes, p.a_scales);
  fill(c.data, p.num_experts * p.n, p.depth, p.n, false, read_experts, random, p.w_codes,
       p.w_scales);
  for (int flat_id = 0; c.weights == kGiven && flat_id < p.num_ids(); ++flat_id) {
    const float weight = p.exact ? std::ldexp(1.0f, -(flat_id * 5 % 7))
                                 : 0.25f + static_cast<float>(flat_id) / 64.0f;  // all different
    p.topk_weights.push_back(weight);
  }
  if (c.data == Data::kNan) spoil_rows(p, random);
  return p;
}

// ---- One call

inline std::vector<int64_t> integers_of(const Fp8GemmProblem& p) {
  return {
      p.num_tokens,      p.top_k, p.num_experts, p.n, p.depth, p.block_m, p.rows_are_slots ? 1 : 0,
      p.out_fp32 ? 1 : 0};
}

inline judge::HostBuffer out_buffer(const Fp8GemmProblem& p, size_t rows) {
  const size_t count = rows * static_cast<size_t>(p.n);
  return shaped(p.out_fp32 ? judge::output<Fp32>("out", count, kPoisonFp32)
                           : judge::output<Bf16>("out", count, kPoisonBf16),
                p.n);
}

// Behind the arrays lies what a flat id or a row of the table, used as a row of A, would reach, and
// one more expert: NaN.
inline Call call_of(const Fp8GemmProblem& p) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const size_t rows_behind = p.sorted_token_ids.size() + static_cast<size_t>(p.num_ids());
  const auto k_blocks = static_cast<size_t>(p.k_blocks());
  const std::vector<Fp8> codes_behind(rows_behind * static_cast<size_t>(p.depth), judge::kE4m3Nan);
  const std::vector<float> a_scales_behind(rows_behind * k_blocks, kNan);
  const std::vector<float> w_scales_behind(static_cast<size_t>(p.n_blocks()) * k_blocks, kNan);
  Call call;
  call.operation = 2;
  call.integers = integers_of(p);
  call.buffers = {
      out_buffer(p, static_cast<size_t>(p.num_ids())),
      shaped(judge::input("a_codes", p.a_codes, codes_behind), p.depth),
      shaped(judge::input("a_scales", p.a_scales, a_scales_behind), p.k_blocks()),
      shaped(judge::input("w_codes", p.w_codes), p.depth, p.n),
      shaped(judge::input("w_scales", p.w_scales, w_scales_behind), p.k_blocks(), p.n_blocks()),
      judge::input("topk_weights", p.topk_weights, std::vector<float>(rows_behind, kNan)),
      judge::input("sorted_token_ids", p.sorted_token_ids),
      judge::input("expert_ids", p.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  call.buffers[5].null = p.topk_weights.empty();
  return call;
}

}  // namespace moe::m5_cases
