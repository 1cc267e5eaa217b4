// The cases of m10_fp8_hopper and their data.
#pragma once

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "judge/random.h"
#include "judge/suite.h"
#include "m10_fp8_hopper_oracle.h"
#include "m1_align_oracle.h"

namespace moe::m10_cases {

using judge::Bf16;
using judge::Fp32;
using judge::Fp8;
using oracle::Coded;
using oracle::Fp8LayerProblem;

inline constexpr Bf16 kPoisonBf16 = 0x7fa5;  // NaNs that no arithmetic makes
inline constexpr Fp32 kPoisonFp32 = 0x7fa5a5a5;

enum class Data {
  kNormal,  // codes of normal values, scales near what makes each step about 1
  kSpread,  // scales over four decades, from block to block
  kExact,   // one value of x a token, gates of 64, one value of w2 a row: each output is one term
  kPromotion,  // x and h as kExact, w2 as kNormal with scales of 1: long sums in GEMM2
  kNan,        // as kNormal; tokens with a NaN, with an outlier, of zeros
  kHot,        // as kNormal; expert E / 2 in every row
};

struct Fp8LayerCase {
  const char* group;
  const char* name;
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
  Data data;
  bool out_fp32 = true;
  bool renormalize = true;
  int calls = 1;  // 2: the same call twice, and both outputs must have the same bytes
  bool refused = false;
  int missing_bytes = 0;  // of the workspace
};

inline constexpr bool kBf16 = false;
inline constexpr bool kFp32 = true;

// clang-format off: one case a line
inline constexpr Fp8LayerCase kCases[] = {
    //                            T   E  K  H    I
    {"tiny", "t4k2", 4, 3, 2, 128, 128, Data::kExact},
    {"tiny", "t4k2_bf16", 4, 3, 2, 128, 128, Data::kExact, kBf16},
    {"edge", "no_tokens", 0, 4, 2, 128, 128, Data::kNormal},
    {"edge", "one_token", 1, 8, 2, 128, 128, Data::kNormal},
    {"edge", "one_expert", 20, 1, 1, 128, 128, Data::kNormal, kBf16},
    {"edge", "not_normalized", 12, 8, 2, 128, 128, Data::kNormal, kFp32, false},
    {"edge", "k8", 9, 16, 8, 128, 128, Data::kNormal, kBf16},
    {"edge", "k_equals_e", 7, 5, 5, 128, 128, Data::kNormal, kFp32, false},
    {"edge", "nan_and_zeros", 15, 4, 2, 256, 256, Data::kNan},
    {"edge", "nan_and_zeros_bf16", 15, 4, 2, 256, 128, Data::kNan, kBf16},
    {"edge", "empty_experts", 4, 60, 2, 128, 128, Data::kNormal, kBf16},
    // scales: several blocks in both reductions, halves of W with scales of their own
    {"scales", "blocks_2_and_2", 20, 3, 2, 256, 256, Data::kSpread},
    {"scales", "blocks_3_and_2", 9, 3, 2, 384, 256, Data::kSpread},
    {"scales", "blocks_2_and_3", 9, 3, 2, 256, 384, Data::kSpread, kBf16},
    {"scales", "blocks_4_and_1", 9, 2, 1, 512, 128, Data::kSpread},
    {"scales", "blocks_1_and_5", 9, 2, 1, 128, 640, Data::kSpread},
    {"scales", "exact_blocks", 30, 3, 2, 384, 384, Data::kExact},
    // rows of one expert: half tiles of 64, whole ones of 128
    {"rows", "rows_63", 63, 1, 1, 128, 128, Data::kExact, kBf16},
    {"rows", "rows_64", 64, 1, 1, 128, 128, Data::kExact, kBf16},
    {"rows", "rows_65", 65, 1, 1, 128, 128, Data::kExact, kBf16},
    {"rows", "rows_128", 128, 1, 1, 128, 128, Data::kExact, kBf16},
    {"rows", "rows_129", 129, 1, 1, 128, 128, Data::kExact, kBf16},
    {"rows", "rows_129_fp32", 129, 1, 1, 128, 128, Data::kExact},
    {"rows", "rows_257", 257, 1, 1, 128, 384, Data::kExact, kBf16},
    {"rows", "hot_expert", 75, 5, 2, 256, 128, Data::kHot, kBf16},
    // ring and tiles: turns around its four stages, more tiles than the emulator's four blocks
    {"ring", "turns_4_and_6", 20, 2, 1, 512, 768, Data::kNormal, kBf16},
    {"ring", "turns_5_and_4", 9, 2, 1, 640, 512, Data::kNormal, kBf16},
    {"ring", "tiles_9", 9, 9, 3, 256, 384, Data::kNormal, kBf16},
    {"ring", "tiles_half_and_whole", 150, 2, 1, 256, 128, Data::kNormal, kBf16},
    // long sums
    {"promotion", "gemm2_depth_4096", 12, 1, 1, 128, 4096, Data::kPromotion},
    {"promotion", "gemm1_depth_4096", 12, 1, 1, 4096, 128, Data::kNormal},
    {"random", "twice_mixtral_like", 33, 8, 2, 256, 384, Data::kNormal, kBf16, true, 2},
    {"random", "twice_qwen3_like", 12, 32, 8, 256, 128, Data::kNormal, kBf16, true, 2},
    {"random", "twice_spread", 40, 4, 2, 384, 256, Data::kSpread, kFp32, false, 2},
    {"refused", "h64", 4, 3, 2, 64, 128, Data::kNormal, kBf16, true, 1, true},
    {"refused", "h192", 4, 3, 2, 192, 128, Data::kNormal, kBf16, true, 1, true},
    {"refused", "i200", 4, 3, 2, 128, 200, Data::kNormal, kBf16, true, 1, true},
    {"refused", "k_exceeds_e", 4, 3, 4, 128, 128, Data::kNormal, kBf16, true, 1, true},
    {"refused", "e1025", 2, 1025, 2, 128, 128, Data::kNormal, kBf16, true, 1, true},
    {"refused", "small_workspace", 4, 3, 2, 128, 128, Data::kNormal, kBf16, true, 1, true, 1},
};
// clang-format on

inline constexpr Fp8 kOne = 0x38;
inline constexpr Fp8 kLargest = 0x7e;
inline constexpr Fp8 kNanCode = 0x7f;
inline constexpr int kBlock = 128;

inline bool is_one_term(Data data) {
  return data == Data::kExact || data == Data::kPromotion;
}

// A code of a normal value, 100 being its deviation.
inline Fp8 normal_code(judge::Random& random) {
  static const std::vector<Fp8> codes = [] {
    judge::Random source(7);
    std::vector<Fp8> table;
    for (int i = 0; i < 4096; ++i) table.push_back(judge::to_e4m3(100.0 * source.normal()));
    return table;
  }();
  return codes[random.bits() % codes.size()];
}

inline float scale_near(double scale, Data data, judge::Random& random) {
  if (data != Data::kSpread) return static_cast<float>(scale * (0.7 + 0.6 * random.uniform()));
  return static_cast<float>(scale * std::pow(10.0, random.integer(-2, 2)));
}

inline void draw_x(const Fp8LayerCase& c, Fp8LayerProblem& p, judge::Random& random) {
  for (int token = 0; token < c.num_tokens; ++token) {
    const int place = token * 37 % c.hidden_size;
    for (int d = 0; d < c.hidden_size; ++d) {
      double value = random.normal();
      if (c.data == Data::kSpread) value *= std::pow(8.0, (token + d / kBlock) % 5 - 2);
      if (is_one_term(c.data)) value = d != place ? 0.0 : token % 2 == 0 ? 448.0 : 224.0;
      if (c.data == Data::kNan && token % 5 == 1 && d == place) value = NAN;
      if (c.data == Data::kNan && token % 5 == 2 && d == place) value = 3000.0;
      if (c.data == Data::kNan && token % 5 == 3) value = 0.0;
      p.x.push_back(judge::to_bf16(value));
    }
  }
}

// One-term data: gate is 64, or 32 where x is 224; up times that is the value of w13's code. A
// largest code in each 128 columns makes the scale of h 1, up to rounding, or 1/4.
inline void draw_w13(const Fp8LayerCase& c, bool chosen, Coded& w, judge::Random& random) {
  const int blocks = c.hidden_size / kBlock;
  const double fan_in = std::sqrt(static_cast<double>(c.hidden_size));
  for (int row = 0; row < 2 * c.intermediate_size; ++row) {
    const bool is_gate = row < c.intermediate_size;
    for (int d = 0; d < c.hidden_size; ++d) {
      Fp8 code = normal_code(random);
      if (is_one_term(c.data) && is_gate) code = kOne;
      if (is_one_term(c.data) && !is_gate && row % kBlock == 5 + d % 7) code = kLargest;
      w.codes.push_back(chosen ? code : kNanCode);
    }
    if (row % kBlock != 0) continue;
    for (int b = 0; b < blocks; ++b) {
      const float scale = scale_near(is_gate ? 0.01 / fan_in : 0.015 / fan_in, c.data, random);
      w.scales.push_back(!is_one_term(c.data) ? scale : is_gate ? 1.0f / 7 : 1.0f / (64 * 448));
    }
  }
}

inline void draw_w2(const Fp8LayerCase& c, bool chosen, Coded& w, judge::Random& random) {
  const int blocks = c.intermediate_size / kBlock;
  const double fan_in = std::sqrt(static_cast<double>(c.intermediate_size));
  for (int row = 0; row < c.hidden_size; ++row) {
    const int picked = random.integer(0, c.intermediate_size - 1);
    for (int d = 0; d < c.intermediate_size; ++d) {
      Fp8 code = normal_code(random);
      if (c.data == Data::kExact) code = d == picked ? kOne : Fp8{0};
      w.codes.push_back(chosen ? code : kNanCode);
    }
    if (row % kBlock != 0) continue;
    for (int b = 0; b < blocks; ++b) {
      const float scale = scale_near(0.02 / fan_in, c.data, random);
      w.scales.push_back(is_one_term(c.data) ? 1.0f : scale);
    }
  }
}

inline std::vector<float> draw_logits(const Fp8LayerCase& c, judge::Random& random) {
  std::vector<float> row;
  for (int e = 0; e < c.num_experts; ++e) {
    const auto logit = static_cast<float>(1.5 * random.normal());
    row.push_back(c.data == Data::kHot && e == c.num_experts / 2 ? 4.0f : logit);
  }
  if (c.data != Data::kExact) return row;
  std::vector<float> equal(static_cast<size_t>(c.num_experts), -200.0f);  // K equal weights
  for (int left = c.top_k; left > 0;) {
    float& logit = equal[random.bits() % equal.size()];
    if (logit < 0.0f) --left;
    logit = 1.0f;
  }
  return equal;
}

inline Fp8LayerProblem make_problem(const Fp8LayerCase& c, uint64_t seed) {
  judge::Random random(seed);
  Fp8LayerProblem p;
  p.num_tokens = c.num_tokens;
  p.num_experts = c.num_experts;
  p.top_k = c.top_k;
  p.hidden_size = c.hidden_size;
  p.intermediate_size = c.intermediate_size;
  p.renormalize = c.renormalize;
  p.out_fp32 = c.out_fp32;
  p.exact = c.data == Data::kExact;
  if (c.refused) {  // nothing is read
    p.x.resize(16);
    p.logits.resize(16);
    for (Coded* w : {&p.w13, &p.w2}) w->codes.resize(16), w->scales.resize(16);
    return p;
  }
  for (int token = 0; token < c.num_tokens; ++token) {
    const auto row = draw_logits(c, random);
    p.logits.insert(p.logits.end(), row.begin(), row.end());
  }
  draw_x(c, p, random);
  const auto rows = oracle::rows_of_experts(p);
  for (const int count : rows) {
    draw_w13(c, count > 0, p.w13, random);
    draw_w2(c, count > 0, p.w2, random);
  }
  return p;
}

}  // namespace moe::m10_cases
