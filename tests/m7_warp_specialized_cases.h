// The cases of m7_warp_specialized and their data.
#pragma once

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "judge/random.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m7_warp_specialized_oracle.h"
#include "routings.h"

namespace moe::m7_cases {

using judge::Bf16;
using oracle::SortedProblem;

inline constexpr Bf16 kNan = 0x7fc0;
inline constexpr Bf16 kPoison = 0x7fa5;  // a NaN that no arithmetic makes

enum class Data {
  kExact,     // GEMM2: integers of -2 .. 2, weights powers of two. GEMM1: x and gate of 3 and 4, so
              // that gates are 64 and more, where SiLU is the gate itself, and up -2 .. 2
  kPositive,  // integers of 0 .. 2: sums pass 256, where bf16 sums would stop counting; GEMM2
  kNormal,    // normal, scaled so that outputs are near 1
  kSpread,    // magnitudes over eight powers of two from row to row
};

// What else is hard about a case.
enum class Twist {
  kNone,
  kRefused,        // the arguments break a rule
  kStaleTail,      // tables behind num_tokens_post_padded still hold an older, larger batch
  kNobodysBlocks,  // some of the table's blocks name an expert outside [0, E)
  kGpuOnly,        // as many tiles as keep 132 multiprocessors busy
};

struct GemmCase {
  const char* group;
  const char* name;
  bool is_gemm1;
  int num_tokens, top_k, num_experts, hidden_size, intermediate_size;
  Load load;
  Data data;
  Twist twist = Twist::kNone;
};

inline constexpr bool kGemm1 = true;
inline constexpr bool kGemm2 = false;
inline constexpr Load kUniform = Load::kUniform;
inline constexpr Data kExact = Data::kExact;
inline constexpr Data kNormal = Data::kNormal;

// clang-format off: one case a line
inline constexpr GemmCase kGemmCases[] = {
    //                                   T  K  E   H   I
    {"tiny", "gemm1_t4k2", kGemm1, 4, 2, 3, 64, 64, kUniform, kExact},
    {"tiny", "gemm2_t4k2", kGemm2, 4, 2, 3, 64, 64, kUniform, kExact},
    {"tiny", "gemm1_t1k1", kGemm1, 1, 1, 1, 64, 8, kUniform, kExact},
    {"tiny", "gemm2_t1k1", kGemm2, 1, 1, 1, 8, 64, kUniform, kExact},
    {"edge", "gemm1_no_tokens", kGemm1, 0, 2, 4, 64, 64, kUniform, kExact},
    {"edge", "gemm2_no_tokens", kGemm2, 0, 2, 4, 64, 64, kUniform, kExact},
    // one turn of 8; columns that fill no box, tile or turn
    {"edge", "gemm1_h8", kGemm1, 9, 2, 3, 8, 72, kUniform, kExact},
    {"edge", "gemm2_i8", kGemm2, 9, 2, 3, 72, 8, kUniform, kExact},
    {"edge", "gemm1_h_tail", kGemm1, 9, 2, 3, 200, 24, kUniform, kExact},
    {"edge", "gemm2_i_tail", kGemm2, 9, 2, 3, 40, 136, kUniform, kExact},
    {"edge", "gemm1_i8", kGemm1, 9, 2, 3, 72, 8, kUniform, kExact},
    {"edge", "gemm2_h8", kGemm2, 9, 2, 3, 8, 72, kUniform, kExact},
    {"edge", "gemm1_i_tail", kGemm1, 9, 2, 2, 40, 136, kUniform, kExact},
    {"edge", "gemm2_h_tail", kGemm2, 9, 2, 2, 264, 24, kUniform, kExact},
    {"edge", "gemm2_long_sums", kGemm2, 9, 2, 2, 72, 512, kUniform, Data::kPositive},
    // blocks: full ones, several of an expert, none, nobody's, nothing behind the end
    {"edge", "gemm1_full_block", kGemm1, 128, 1, 1, 64, 136, kUniform, kExact},
    {"edge", "gemm2_full_block", kGemm2, 128, 1, 1, 264, 64, kUniform, kExact},
    {"edge", "gemm1_three_blocks", kGemm1, 150, 2, 3, 72, 40, Load::kOneExpert, kExact},
    {"edge", "gemm2_three_blocks", kGemm2, 150, 2, 3, 72, 40, Load::kOneExpert, kExact},
    {"edge", "gemm1_last_expert", kGemm1, 10, 2, 8, 64, 64, Load::kLastExpert, kExact},
    {"edge", "gemm2_every_second_empty", kGemm2, 20, 2, 9, 64, 64, Load::kEvenOnly, kExact},
    {"edge", "gemm1_ids_out_of_range", kGemm1, 24, 3, 6, 64, 64, Load::kUnrouted, kExact},
    {"edge", "gemm2_ids_out_of_range", kGemm2, 24, 3, 6, 64, 64, Load::kUnrouted, kExact},
    {"edge", "gemm1_nobodys_blocks", kGemm1, 40, 2, 8, 64, 64, kUniform, kExact,
     Twist::kNobodysBlocks},
    {"edge", "gemm2_nobodys_blocks", kGemm2, 40, 2, 8, 64, 64, kUniform, kExact,
     Twist::kNobodysBlocks},
    {"edge", "gemm1_nothing_behind_the_end", kGemm1, 18, 2, 8, 64, 64, Load::kEvenOnly, kExact,
     Twist::kStaleTail},
    {"edge", "gemm2_nothing_behind_the_end", kGemm2, 18, 2, 8, 64, 64, Load::kEvenOnly, kExact,
     Twist::kStaleTail},
    {"edge", "gemm1_k8", kGemm1, 10, 8, 9, 72, 40, kUniform, kNormal},
    // several tiles a block (four multiprocessors on the emulator), in rows and columns
    {"edge", "gemm1_13_tiles", kGemm1, 20, 2, 13, 136, 72, kUniform, kExact},
    {"edge", "gemm2_15_tiles", kGemm2, 20, 2, 5, 712, 136, kUniform, kExact},
    {"edge", "gemm2_12_tiles_of_one_turn", kGemm2, 20, 2, 6, 512, 64, kUniform, kExact},
    {"edge", "gemm1_many_tiles", kGemm1, 5, 1, 1, 264, 38400, kUniform, kExact, Twist::kGpuOnly},
    {"edge", "gemm2_many_tiles", kGemm2, 5, 1, 1, 76800, 264, kUniform, kExact, Twist::kGpuOnly},
    // the ring of the solution has four stages: tiles begin and end at every place of it
    {"ring", "gemm1_1_turn", kGemm1, 8, 2, 3, 64, 136, kUniform, kExact},
    {"ring", "gemm1_2_turns", kGemm1, 8, 2, 3, 128, 136, kUniform, kExact},
    {"ring", "gemm1_3_turns", kGemm1, 8, 2, 3, 192, 136, kUniform, kExact},
    {"ring", "gemm1_4_turns", kGemm1, 8, 2, 3, 256, 136, kUniform, kExact},
    {"ring", "gemm1_5_turns", kGemm1, 8, 2, 3, 320, 136, kUniform, kExact},
    {"ring", "gemm1_6_turns", kGemm1, 8, 2, 3, 384, 136, kUniform, kExact},
    {"ring", "gemm1_7_turns", kGemm1, 8, 2, 3, 448, 136, kUniform, kExact},
    {"ring", "gemm1_8_turns", kGemm1, 8, 2, 3, 512, 136, kUniform, kExact},
    {"ring", "gemm1_9_turns", kGemm1, 8, 2, 3, 576, 136, kUniform, kExact},
    {"ring", "gemm2_1_turn", kGemm2, 8, 2, 3, 264, 64, kUniform, kExact},
    {"ring", "gemm2_2_turns", kGemm2, 8, 2, 3, 264, 128, kUniform, kExact},
    {"ring", "gemm2_3_turns", kGemm2, 8, 2, 3, 264, 192, kUniform, kExact},
    {"ring", "gemm2_4_turns", kGemm2, 8, 2, 3, 264, 256, kUniform, kExact},
    {"ring", "gemm2_5_turns", kGemm2, 8, 2, 3, 264, 320, kUniform, kExact},
    {"ring", "gemm2_6_turns", kGemm2, 8, 2, 3, 264, 384, kUniform, kExact},
    {"ring", "gemm2_7_turns", kGemm2, 8, 2, 3, 264, 448, kUniform, kExact},
    {"ring", "gemm2_8_turns", kGemm2, 8, 2, 3, 264, 512, kUniform, kExact},
    {"ring", "gemm2_9_turns", kGemm2, 8, 2, 3, 264, 576, kUniform, kExact},
    {"random", "gemm1", kGemm1, 33, 2, 4, 136, 136, kUniform, kNormal},
    {"random", "gemm2", kGemm2, 33, 2, 4, 136, 200, kUniform, kNormal},
    {"random", "gemm1_skewed", kGemm1, 140, 2, 4, 72, 72, Load::kSkewed, kNormal},
    {"random", "gemm2_skewed", kGemm2, 140, 2, 4, 72, 72, Load::kSkewed, kNormal},
    {"random", "gemm1_spread", kGemm1, 30, 4, 6, 96, 64, kUniform, Data::kSpread},
    {"random", "gemm2_spread", kGemm2, 30, 4, 6, 64, 96, kUniform, Data::kSpread},
    {"random", "gemm1_many_experts", kGemm1, 17, 2, 32, 64, 64, kUniform, kNormal},
    {"refused", "gemm1_h12", kGemm1, 4, 2, 3, 12, 16, kUniform, kNormal, Twist::kRefused},
    {"refused", "gemm1_i20", kGemm1, 4, 2, 3, 16, 20, kUniform, kNormal, Twist::kRefused},
    {"refused", "gemm2_i12", kGemm2, 4, 2, 3, 16, 12, kUniform, kNormal, Twist::kRefused},
    {"refused", "gemm2_h20", kGemm2, 4, 2, 3, 20, 16, kUniform, kNormal, Twist::kRefused},
    {"refused", "gemm2_k_exceeds_e", kGemm2, 4, 4, 3, 16, 16, Load::kAscending, kNormal,
     Twist::kRefused},
};
// clang-format on

inline std::string shape_of(const SortedProblem& p) {
  return std::string(p.is_gemm1 ? "GEMM1" : "GEMM2") + " T=" + std::to_string(p.num_tokens) +
         " K=" + std::to_string(p.top_k) + " E=" + std::to_string(p.num_experts) +
         " H=" + std::to_string(p.hidden_size) + " I=" + std::to_string(p.intermediate_size);
}

inline SortedProblem sizes_of(const GemmCase& c) {
  SortedProblem p;
  p.is_gemm1 = c.is_gemm1;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.hidden_size = c.hidden_size;
  p.intermediate_size = c.intermediate_size;
  p.exact = c.data == kExact || c.data == Data::kPositive;
  p.stale_tail = c.twist == Twist::kStaleTail;
  return p;
}

// One value of a, or of a gate row, or of another row of w.
inline double draw(const GemmCase& c, bool of_up, judge::Random& random) {
  if (c.data == kExact && c.is_gemm1 && !of_up) return random.integer(3, 4);
  if (c.data == kExact) return random.integer(-2, 2);
  if (c.data == Data::kPositive) return random.integer(0, 2);
  const int depth = c.is_gemm1 ? c.hidden_size : c.intermediate_size;
  return random.normal() / std::sqrt(std::sqrt(static_cast<double>(depth)));
}

// Rows of a and experts that nobody may read hold NaN, so that a missing mask shows at once; in
// GEMM2 padding rows of h, too.
inline void draw_operands(const GemmCase& c, SortedProblem& p, judge::Random& random) {
  std::set<int64_t> read_rows;
  std::set<int> read_experts;
  for (int row = 0; row < p.capacity(); ++row) {
    if (!p.is_real(row)) continue;
    read_rows.insert(p.row_of_a(row));
    read_experts.insert(p.expert_of(row));
  }
  const int rows_of_a = p.is_gemm1 ? p.num_tokens : p.capacity();
  for (int row = 0; row < rows_of_a; ++row) {
    const double scale = c.data == Data::kSpread ? std::ldexp(1.0, row % 9 - 4) : 1.0;
    const bool is_read = read_rows.count(row) != 0;
    for (int d = 0; d < p.depth(); ++d) {
      p.a.push_back(is_read ? judge::to_bf16(scale * draw(c, false, random)) : kNan);
    }
  }
  for (int e = 0; e < p.num_experts; ++e) {
    for (int row = 0; row < p.rows_of_w(); ++row) {
      const bool of_up = row >= p.intermediate_size;
      for (int d = 0; d < p.depth(); ++d) {
        const double value = draw(c, of_up, random);
        p.w.push_back(read_experts.count(e) != 0 ? judge::to_bf16(value) : kNan);
      }
    }
  }
}

inline void make_table(SortedProblem& p) {
  const auto table =
      oracle::align(p.topk_ids, p.num_tokens, p.top_k, p.num_experts, oracle::kSortedBlock);
  p.sorted_token_ids = table.sorted_token_ids;
  p.expert_ids = table.expert_ids;
  p.num_tokens_post_padded = table.num_tokens_post_padded;
}

inline SortedProblem make_problem(const GemmCase& c, uint64_t seed) {
  judge::Random random(seed);
  SortedProblem p = sizes_of(c);
  p.topk_ids = make_topk_ids(c.load, c.num_tokens, c.top_k, c.num_experts, random.bits());
  if (std::string(c.name).find("t4k2") != std::string::npos) p.topk_ids = {0, 1, 1, 2, 0, 2, 1, 0};
  make_table(p);
  if (c.twist == Twist::kNobodysBlocks) {
    const int32_t nobody[] = {-1, p.num_experts, INT32_MIN, p.num_experts + 1000};
    for (size_t block = 0; block < p.expert_ids.size(); block += 2) {
      p.expert_ids[block] = nobody[block / 2 % 4];
    }
  }
  for (int flat_id = 0; !c.is_gemm1 && flat_id < p.num_ids(); ++flat_id) {
    const int32_t e = p.topk_ids[static_cast<size_t>(flat_id)];
    const double weight =
        p.exact ? std::ldexp(1.0, flat_id % 7 - 4) : 0.02 + 0.98 * random.uniform();
    const bool routed = e >= 0 && e < p.num_experts;
    p.topk_weights.push_back(routed ? static_cast<float>(weight) : judge::to_float(kNan));
  }
  draw_operands(c, p, random);
  return p;
}

// Behind the end of the tables: what a larger batch would have left there, all of it legal to look
// at.
inline void leave_stale_tail(SortedProblem& p) {
  for (size_t row = static_cast<size_t>(p.num_tokens_post_padded); row < p.sorted_token_ids.size();
       ++row) {
    p.sorted_token_ids[row] = static_cast<int32_t>(row % static_cast<size_t>(p.num_ids()));
    p.expert_ids[row / oracle::kSortedBlock] = p.topk_ids[0];
  }
}

inline judge::Call call_gemm(const SortedProblem& problem) {
  SortedProblem tables = problem;
  if (problem.stale_tail) leave_stale_tail(tables);
  const SortedProblem& p = problem;
  // What lies behind x in memory: NaN for every row that a flat id used as a row would reach, and
  // for a tile that reads on behind the last row.
  const auto reached = p.is_gemm1 ? static_cast<size_t>(p.num_ids() - p.num_tokens) : 0;
  const size_t behind = reached * static_cast<size_t>(p.depth()) + oracle::kSortedBlock;
  judge::Call call;
  call.operation = p.is_gemm1 ? 0 : 1;
  call.integers = {p.num_tokens, p.top_k, p.num_experts, p.hidden_size, p.intermediate_size};
  call.buffers = {
      shaped(
          judge::output<Bf16>(
              "out", static_cast<size_t>(p.capacity()) * static_cast<size_t>(p.columns()), kPoison),
          p.columns()),
      shaped(judge::input("a", p.a, std::vector<Bf16>(behind, kNan)), p.depth()),
      shaped(judge::input("w", p.w, std::vector<Bf16>(oracle::kSortedBlock, kNan)), p.depth(),
             p.rows_of_w()),
      judge::input("topk_weights", p.topk_weights),
      judge::input("sorted_token_ids", tables.sorted_token_ids),
      judge::input("expert_ids", tables.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  call.buffers[3].null = p.topk_weights.empty();
  return call;
}

}  // namespace moe::m7_cases
