// Tests of the GEMM of m5_block_fp8, in bf16 and fp32 outputs, judged row by row against double
// precision on the same codes. Those of the quantisers are in m5_block_fp8_quantize_test.cpp.
#include <drills/m5_block_fp8.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "judge/models.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m5_block_fp8_bugs.h"
#include "m5_block_fp8_judge.h"
#include "m5_block_fp8_oracle.h"
#include "m5_block_fp8_trace.h"
#include "routings.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Fp32;
using judge::Fp8;
using judge::Outputs;
using judge::Verdict;
using oracle::Fp8GemmProblem;

constexpr Bf16 kPoisonBf16 = 0x7fa5;  // NaNs that no arithmetic makes
constexpr Fp32 kPoisonFp32 = bugs::kPoisonBits;

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

constexpr Rows kTokens = Rows::kTokens;
constexpr Rows kSlots = Rows::kSlots;
constexpr Load kUniform = Load::kUniform;
constexpr Out kBf16 = Out::kBf16;
constexpr Out kFp32 = Out::kFp32;
constexpr Weights kGiven = Weights::kGiven;
constexpr Weights kNone = Weights::kNone;

constexpr GemmCase kCases[] = {
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

std::string shape_of(const GemmCase& c) {
  return std::string(c.rows == kTokens ? "GEMM1" : "GEMM2") + " T=" + std::to_string(c.num_tokens) +
         " K=" + std::to_string(c.top_k) + " E=" + std::to_string(c.num_experts) +
         " N=" + std::to_string(c.n) + " D=" + std::to_string(c.depth) +
         " block_m=" + std::to_string(c.block_m) + (c.out == Out::kFp32 ? " fp32" : " bf16");
}

// ---- Data

Fp8 draw_code(Data data, judge::Random& random) {
  if (data == Data::kOnes) return judge::to_e4m3(1.0);
  if (data == Data::kExact) return judge::to_e4m3(random.integer(-2, 2));
  if (data == Data::kPositive) return judge::to_e4m3(random.integer(0, 2));
  return judge::to_e4m3(random.normal() * 100.0);  // up to +-448 now and then
}

float draw_scale(Data data, int block, bool of_a, judge::Random& random) {
  if (data == Data::kOnes) return of_a ? static_cast<float>(block + 1) : 1.0f;
  if (data == Data::kPositive) return 1.0f;
  if (data == Data::kExact) return std::ldexp(1.0f, random.integer(-3, 3));
  if (data == Data::kDecades)
    return static_cast<float>(std::pow(10.0, 6.0 * random.uniform() - 3.0));
  return static_cast<float>(0.003 * (0.5 + random.uniform()));
}

// Codes and scales of one array; rows that nobody may read hold NaN, codes and scales alike.
void fill(Data data,
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

void spoil_rows(Fp8GemmProblem& p, judge::Random& random) {
  for (int row = 0; row < p.rows_of_a(); row += 3) {
    const auto place = static_cast<size_t>(row) * static_cast<size_t>(p.depth);
    const auto offset = static_cast<size_t>(random.integer(0, p.depth - 1));
    p.a_codes[place + offset] = random.integer(0, 1) == 0 ? Fp8{0x7f} : Fp8{0xff};
  }
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    p.nan_rows.push_back(p.row_of(flat_id) % 3 == 0 ? 1 : 0);
  }
}

Fp8GemmProblem make_problem(const GemmCase& c, uint64_t seed) {
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

std::vector<int64_t> integers_of(const Fp8GemmProblem& p) {
  return {
      p.num_tokens,      p.top_k, p.num_experts, p.n, p.depth, p.block_m, p.rows_are_slots ? 1 : 0,
      p.out_fp32 ? 1 : 0};
}

judge::HostBuffer out_buffer(const Fp8GemmProblem& p, size_t rows) {
  const size_t count = rows * static_cast<size_t>(p.n);
  return p.out_fp32 ? judge::output<Fp32>("out", count, kPoisonFp32)
                    : judge::output<Bf16>("out", count, kPoisonBf16);
}

// Behind the arrays lies what a flat id or a row of the table, used as a row of A, would reach, and
// one more expert: NaN.
Call call_of(const Fp8GemmProblem& p) {
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
      judge::input("a_codes", p.a_codes, codes_behind),
      judge::input("a_scales", p.a_scales, a_scales_behind),
      judge::input("w_codes", p.w_codes),
      judge::input("w_scales", p.w_scales, w_scales_behind),
      judge::input("topk_weights", p.topk_weights, std::vector<float>(rows_behind, kNan)),
      judge::input("sorted_token_ids", p.sorted_token_ids),
      judge::input("expert_ids", p.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  call.buffers[5].null = p.topk_weights.empty();
  return call;
}

// ---- Judging, for either type of output

// Rows that must be as they were, and rows that must be NaN.
template <class T>
Verdict judge_other_rows(const Fp8GemmProblem& p, const std::vector<T>& out, T poison) {
  const auto judged = judged_rows(p);
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    if (judged[static_cast<size_t>(flat_id)] != 0) continue;
    for (int column = 0; column < p.n; ++column) {
      const T got = out[static_cast<size_t>(flat_id) * static_cast<size_t>(p.n) +
                        static_cast<size_t>(column)];
      const std::string place =
          "out[" + std::to_string(flat_id) + "][" + std::to_string(column) + "]";
      if (!p.routed(flat_id) && got != poison) {
        return judge::wrong(bugs::kFp8Unrouted, {place + " changed; its flat id has no expert"});
      }
      if (p.routed(flat_id) && (got == poison || !judge::is_nan(got))) {
        return judge::wrong(bugs::kFp8NanLost, {place + " is no NaN"});
      }
    }
  }
  return {};
}

template <class T>
Verdict judge_values(const Fp8GemmProblem& p, const std::vector<T>& out, T poison) {
  const auto want = oracle::grouped_gemm_fp8(p);
  const auto difference = judge::compare(out, want, judged_rows(p), poison, p.exact);
  if (difference.right) return judge_other_rows(p, out, poison);
  judge::note_wrong("out", want.rows, want.columns, difference.wrong, judged_rows(p));
  const auto evidence = judge::shape_of_error(difference, "out", p.n);
  auto mistakes = explaining(p, out, want, difference, poison);
  // Zeros in the first columns of rows: what lies behind column N of the row before.
  const int spill = (128 - p.n % 128) % 128;
  if (difference.zero > 0 && difference.zero == difference.wrong_elements &&
      difference.columns.back() < spill) {
    mistakes.push_back(bugs::kFp8ColumnsSpill);
  }
  if (mistakes.empty() && difference.nan - difference.untouched > 0) {
    mistakes.push_back(bugs::kFp8Uninitialised);
  }
  return mistakes.empty() ? judge::wrong("The output is wrong.", evidence)
                          : judge::wrong(mistakes, evidence);
}

Verdict judge_output(const Fp8GemmProblem& p, const Outputs& outputs) {
  return p.out_fp32 ? judge_values(p, outputs.values<Fp32>(0), kPoisonFp32)
                    : judge_values(p, outputs.values<Bf16>(0), kPoisonBf16);
}

// Writes outside `out`: named by the values if they say more, else padding rows (they reach one row
// behind the end) or columns behind N.
Verdict explain_memory(const Fp8GemmProblem& p, const Outputs* outputs, Verdict verdict) {
  if (verdict.outside_of != "out" || outputs == nullptr) return verdict;
  Verdict of_values = judge_output(p, *outputs);
  const bool named_by_values = !of_values.code.empty();
  if (named_by_values) return of_values;
  if (verdict.outside_first < 0) return verdict;
  const int64_t row_bytes = static_cast<int64_t>(p.out_fp32 ? sizeof(Fp32) : sizeof(Bf16)) * p.n;
  const bool one_row = verdict.outside_last < row_bytes && of_values.pass();
  return judge::wrong(one_row ? bugs::kFp8PadRowsStored : bugs::kFp8ColumnsSpill, verdict.evidence);
}

std::string got_text(const Fp8GemmProblem& p, const Outputs& outputs, judge::Place place) {
  const auto index = static_cast<size_t>(place.row * p.n + place.column);
  if (place.row >= p.num_ids() || place.column >= p.n) return {};
  const float value = p.out_fp32 ? judge::to_float(outputs.values<Fp32>(0)[index])
                                 : judge::to_float(outputs.values<Bf16>(0)[index]);
  return judge::number_text(static_cast<double>(value));
}

class M5BlockFp8 : public testing::TestWithParam<GemmCase> {};

TEST_P(M5BlockFp8, ScalesEveryBlock) {
  const GemmCase& c = GetParam();
  judge::StageCase<Fp8GemmProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_of;
  stage_case.judge = judge_output;
  stage_case.explain = explain_memory;
  stage_case.trace = [](const Fp8GemmProblem& p, const Outputs* outputs, judge::Place place) {
    return oracle::trace_of(p, outputs == nullptr ? "" : got_text(p, *outputs, place), place);
  };
  judge::run_case(stage_case);
}

std::vector<GemmCase> cases_of(const std::string& group) {
  std::vector<GemmCase> chosen;
  for (const GemmCase& c : kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M5BlockFp8, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M5BlockFp8, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M5BlockFp8, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M5BlockFp8, testing::ValuesIn(cases_of("refused")), name_of_case);

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m5_block_fp8",
      {"m5.power", "m5.amax", "m5.scale", "m5.encode", "m5.block", "m5.scale_rows", "m5.scales",
       "m5.multiply", "m5.promote", "m5.store"},
      [] {
        moe::bugs::quantize_models();
        moe::bugs::fp8_gemm_models();
      });
}
