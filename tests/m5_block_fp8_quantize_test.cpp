// Tests of the quantisers of m5_block_fp8: codes and scales, bit for bit.
#include <drills/m5_block_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <string>

#include "judge/suite.h"
#include "m5_block_fp8_bugs.h"
#include "m5_block_fp8_oracle.h"
#include "m5_block_fp8_trace.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Fp8;
using judge::Outputs;
using judge::Verdict;
using oracle::Quantized;
using oracle::QuantizeProblem;

enum class Values {
  kDecades,   // normal, each block at its own magnitude over six decades
  kTies,      // many quotients halfway between two codes, or next to that
  kAllCodes,  // scale 1: every bf16 from 2^-11 to 448, both signs
  kZeros,     // whole blocks of +0 and -0 among others
  kSpecial,   // NaN of both signs, infinities, the largest and the smallest bf16
  kPowers,    // scales at and next to every power of two from 2^-60 to 2^60; one row each
};

struct QuantizeCase {
  const char* group;
  const char* name;
  bool weights;
  int num_matrices;  // rows, or experts
  int n;             // 1 for rows
  int depth;
  Values values;
  bool power_of_two = false;
  bool refused = false;
};

constexpr QuantizeCase kQuantizeCases[] = {
    {"tiny", "rows_one_block", false, 1, 1, 128, Values::kDecades},
    {"tiny", "rows_t4", false, 4, 1, 256, Values::kDecades},
    {"tiny", "weights_one_block", true, 1, 128, 128, Values::kDecades},
    {"edge", "rows_none", false, 0, 1, 128, Values::kDecades},
    {"edge", "rows_d16", false, 3, 1, 16, Values::kDecades},
    {"edge", "rows_tail", false, 5, 1, 144, Values::kDecades},
    {"edge", "rows_ties", false, 20, 1, 256, Values::kTies},
    {"edge", "rows_all_codes", false, 40, 1, 128, Values::kAllCodes},
    {"edge", "rows_zeros", false, 8, 1, 256, Values::kZeros},
    {"edge", "rows_zeros_power_of_two", false, 8, 1, 256, Values::kZeros, true},
    {"edge", "rows_special", false, 30, 1, 256, Values::kSpecial},
    {"edge", "rows_powers", false, 363, 1, 16, Values::kPowers, true},
    {"edge", "rows_powers_unused", false, 363, 1, 16, Values::kPowers},
    {"edge", "weights_n8_d16", true, 2, 8, 16, Values::kDecades},
    {"edge", "weights_tails", true, 2, 200, 272, Values::kDecades},
    {"edge", "weights_seam", true, 1, 384, 128, Values::kDecades},
    {"edge", "weights_ties", true, 1, 128, 256, Values::kTies},
    {"edge", "weights_zeros", true, 3, 136, 144, Values::kZeros},
    {"edge", "weights_special", true, 3, 136, 144, Values::kSpecial},
    {"random", "rows", false, 65, 1, 2064, Values::kDecades},
    {"random", "rows_power_of_two", false, 33, 1, 784, Values::kDecades, true},
    {"random", "weights", true, 3, 264, 400, Values::kDecades},
    {"random", "weights_power_of_two", true, 2, 256, 256, Values::kDecades, true},
    {"refused", "rows_d20", false, 4, 1, 20, Values::kDecades, false, true},
    {"refused", "rows_negative", false, -1, 1, 128, Values::kDecades, false, true},
    {"refused", "weights_n12", true, 1, 12, 128, Values::kDecades, false, true},
    {"refused", "weights_d8", true, 1, 16, 8, Values::kDecades, false, true},
};

// A bf16 with this mantissa (128 .. 255), so that its multiples by small fractions are bf16 too.
Bf16 with_mantissa(int mantissa, int exponent) {
  return judge::to_bf16(std::ldexp(mantissa, exponent - 7));
}

// amax of the ties: a mantissa that is a multiple of 4. 3/4 of it, and halves of that, times 448 /
// amax is 336, 168, ..., 21: 21 lies halfway between 20 and 22 in 3 bits of mantissa. Division by a
// scale that is rounded lands on the tie or next to it; formulas with another rounding land
// elsewhere.
struct Tie {
  int mantissa;
  int exponent;
};

class ValueMaker {
 public:
  ValueMaker(const QuantizeCase& c, uint64_t seed) : case_(c), random_(seed) {}

  std::vector<Bf16> make() {
    const int per_block = case_.weights ? 128 : 1;
    std::vector<Bf16> values;
    const int k_blocks = (case_.depth + 127) / 128;
    for (int matrix = 0; matrix < case_.num_matrices; ++matrix) {
      std::vector<Tie> blocks;
      for (int row = 0; row < case_.n; ++row) {
        if (row % per_block == 0) blocks = new_blocks(k_blocks);
        for (int k = 0; k < case_.depth; ++k) {
          values.push_back(value(matrix, row, k, blocks[static_cast<size_t>(k / 128)]));
        }
      }
    }
    return values;
  }

 private:
  std::vector<Tie> new_blocks(int count) {
    std::vector<Tie> blocks(static_cast<size_t>(count));
    for (Tie& block : blocks) block = {4 * random_.integer(32, 63), random_.integer(-10, 10)};
    return blocks;
  }

  Bf16 value(int matrix, int row, int k, const Tie& block) {
    const double sign = random_.integer(0, 1) == 0 ? 1.0 : -1.0;
    const double normal = random_.normal();
    const int place = (matrix * case_.n + row) * case_.depth + k;
    switch (case_.values) {
      case Values::kDecades:  // magnitudes differ from row to row of a block too
        return judge::to_bf16(normal * std::ldexp(block.mantissa, block.exponent - row % 5));
      case Values::kTies: {
        if (k % 128 == 0 && row % 128 == 0) return with_mantissa(block.mantissa, block.exponent);
        const double amax = judge::to_float(with_mantissa(block.mantissa, block.exponent));
        if (k % 4 == 0) return judge::to_bf16(amax * sign * random_.uniform());
        return judge::to_bf16(amax * sign * 0.75 * std::ldexp(1.0, -random_.integer(0, 12)));
      }
      case Values::kAllCodes: {
        if (k % 128 == 0) return judge::to_bf16(448.0);
        const int index = place - place / 128 - 1;
        const int bits = 0x3a00 + index / 2 % (0x43e0 - 0x3a00 + 1);
        return static_cast<Bf16>(bits | (index % 2) << 15);
      }
      case Values::kZeros:
        if (block.mantissa % 8 == 0) return k % 3 == 0 ? Bf16{0x8000} : Bf16{0};
        return k % 5 == 0 ? Bf16{0x8000} : judge::to_bf16(normal);
      case Values::kSpecial:
        return special(block, sign * normal);
      case Values::kPowers: {
        if (k != 0) return judge::to_bf16(normal * 1e-3);
        const Bf16 exact = judge::to_bf16(std::ldexp(448.0, matrix / 3 - 60));
        return static_cast<Bf16>((exact + matrix % 3 - 1) | (sign < 0 ? 0x8000 : 0));
      }
    }
    return 0;
  }

  Bf16 special(const Tie& block, double normal) {
    // Quiet NaNs: of a signalling one and a number, fmaxf gives NaN on some processors.
    constexpr Bf16 kSpecials[] = {0x7fc0, 0xffc0, 0x7fff, 0x7f80, 0xff80, 0x7f7f, 0xff7f,
                                  0x0001, 0x8001, 0x007f, 0x0080, 0x0000, 0x8000};
    // Blocks with NaN alone, with everything, with NaN only.
    const int kind = block.mantissa / 4 % 3;
    if (kind == 2) return kSpecials[random_.integer(0, 2)];
    const int share = kind == 0 ? 20 : 2;
    if (random_.integer(0, share) != 0) return judge::to_bf16(normal);
    return kSpecials[random_.integer(0, kind == 0 ? 2 : 12)];
  }

  const QuantizeCase& case_;
  judge::Random random_;
};

QuantizeProblem make_quantize(const QuantizeCase& c, uint64_t seed) {
  QuantizeProblem p = {c.num_matrices, c.n, c.depth, c.power_of_two, {}};
  p.values = ValueMaker(c, seed).make();
  return p;
}

Call call_quantize(const QuantizeCase& c, const QuantizeProblem& p) {
  const auto blocks =
      static_cast<size_t>((c.n + 127) / 128) * static_cast<size_t>((c.depth + 127) / 128);
  const size_t scales = c.num_matrices < 0 ? 1 : static_cast<size_t>(c.num_matrices) * blocks;
  Call call;
  call.operation = c.weights ? 1 : 0;
  call.integers = {c.num_matrices, c.depth, c.power_of_two ? 1 : 0};
  if (c.weights) call.integers = {c.num_matrices, c.n, c.depth, c.power_of_two ? 1 : 0};
  const int rows = c.weights ? c.n : 0;
  call.buffers = {
      shaped(judge::output<Fp8>("codes", p.values.size(), bugs::kPoisonCode), c.depth, rows),
      judge::output<judge::Fp32>("scales", scales, bugs::kPoisonBits),
      shaped(judge::input(c.weights ? "w" : "values", p.values), c.depth, rows)};
  return call;
}

// ---- Judging

judge::Fp32 bits_of(float value) {
  judge::Fp32 bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The same mistake seen in codes and scales: how many are wrong, how many of all agree with a
// model.
struct Share {
  size_t all = 0, agreed = 0, wrong = 0, explained = 0;
  void add(uint32_t got, uint32_t want, uint32_t said) {
    ++all;
    agreed += got == said ? 1 : 0;
    wrong += got != want ? 1 : 0;
    explained += got != want && got == said ? 1 : 0;
  }
  bool names_it() const {
    return wrong > 0 && agreed * 100 >= all * 99 && explained * 100 >= wrong * 99;
  }
};

uint32_t scale_bits(float value) {  // any NaN but the poison is one
  const judge::Fp32 bits = bits_of(value);
  return judge::is_nan(bits) && bits != bugs::kPoisonBits ? 0x7fffffffu : bits;
}

Share compare_with(const Quantized& got, const Quantized& want, const Quantized& said) {
  Share share;
  for (size_t i = 0; i < want.codes.size(); ++i)
    share.add(got.codes[i], want.codes[i], said.codes[i]);
  for (size_t i = 0; i < want.scales.size(); ++i) {
    share.add(scale_bits(got.scales[i]), scale_bits(want.scales[i]), scale_bits(said.scales[i]));
  }
  return share;
}

std::vector<std::string> evidence_of(const QuantizeProblem& p,
                                     const Quantized& got,
                                     const Quantized& want) {
  std::vector<std::string> lines;
  char text[200];
  const auto note = [&](const char* name, size_t wrong, size_t all, size_t first,
                        const char* rest) {
    char start[120];
    std::snprintf(start, sizeof start, "%zu of %zu %s wrong; first [%zu]: ", wrong, all, name,
                  first);
    if (wrong > 0) lines.push_back(std::string(start) + rest);
  };
  size_t wrong = 0;
  size_t first = 0;
  for (size_t i = want.scales.size(); i-- > 0;) {
    if (scale_bits(got.scales[i]) == scale_bits(want.scales[i])) continue;
    ++wrong;
    first = i;
  }
  if (!want.scales.empty()) {
    const double value = static_cast<double>(got.scales[first]);
    std::snprintf(text, sizeof text, "got %.9g, want %.9g", value,
                  static_cast<double>(want.scales[first]));
    const bool unwritten = bits_of(got.scales[first]) == bugs::kPoisonBits;
    note("scales", wrong, want.scales.size(), first, unwritten ? "never written" : text);
  }
  wrong = first = 0;
  for (size_t i = want.codes.size(); i-- > 0;) {
    if (got.codes[i] == want.codes[i]) continue;
    ++wrong;
    first = i;
  }
  if (wrong > 0) {
    std::snprintf(text, sizeof text, "value %.6g in row %zu: got 0x%02x (%g), want 0x%02x (%g)",
                  static_cast<double>(judge::to_float(p.values[first])),
                  first / static_cast<size_t>(p.depth), static_cast<unsigned>(got.codes[first]),
                  judge::from_e4m3(got.codes[first]), static_cast<unsigned>(want.codes[first]),
                  judge::from_e4m3(want.codes[first]));
    note("codes", wrong, want.codes.size(), first,
         got.codes[first] == bugs::kPoisonCode ? "never written" : text);
  }
  return lines;
}

Verdict judge_quantize(const QuantizeProblem& p, const Outputs& outputs) {
  const Quantized got = {outputs.values<Fp8>(0), outputs.values<float>(1)};
  const Quantized want = oracle::quantize(p);
  if (compare_with(got, want, want).wrong == 0) return {};
  std::vector<uint8_t> wrong;
  for (size_t i = 0; i < want.codes.size(); ++i) wrong.push_back(got.codes[i] != want.codes[i]);
  judge::note_wrong("codes", static_cast<int64_t>(p.num_matrices) * p.n, p.depth, wrong);
  const auto evidence = evidence_of(p, got, want);
  std::vector<judge::Mistake> mistakes;
  for (const bugs::QuantizeModel& model : bugs::quantize_models()) {
    const bool known = std::any_of(mistakes.begin(), mistakes.end(), [&](const judge::Mistake& m) {
      return std::string(m.code) == model.mistake.code;
    });
    if (!known && compare_with(got, want, model.output(p)).names_it())
      mistakes.push_back(model.mistake);
  }
  const bool wrong_scales =
      compare_with({{}, got.scales}, {{}, want.scales}, {{}, want.scales}).wrong > 0;
  if (mistakes.empty() && p.power_of_two && wrong_scales) mistakes.push_back(bugs::kPowerWrong);
  return mistakes.empty() ? judge::wrong("Codes or scales are wrong.", evidence)
                          : judge::wrong(mistakes, evidence);
}

// power_of_two_at_least alone: each power from 2^-60 to 2^60, the floats next to it and some
// behind.
Verdict ask_powers() {
  constexpr int kOtherwise = 1000;
  std::set<int> wrong_at;  // offsets, in floats, from a power of two
  std::string first_wrong;
  for (int exponent = -60; exponent <= 60; ++exponent) {
    for (const int offset : {-1, 0, 1, 2, 3, 63}) {
      const judge::Fp32 bits = bits_of(std::ldexp(1.0f, exponent)) + static_cast<uint32_t>(offset);
      Verdict verdict;
      const int64_t answer = judge::Suite::get().ask_value(0, {bits}, verdict);
      if (!verdict.pass()) return verdict;
      const float scale = judge::to_float(bits);
      const float got = judge::to_float(static_cast<judge::Fp32>(answer));
      const float want = oracle::power_of_two_at_least(scale);
      if (got == want) continue;
      char text[120];
      std::snprintf(text, sizeof text, "of %.9g: got %.9g, want %.9g", static_cast<double>(scale),
                    static_cast<double>(got), static_cast<double>(want));
      if (wrong_at.empty()) first_wrong = text;
      wrong_at.insert(got == want / 2 || (got == want * 2 && offset == 0) ? offset : kOtherwise);
    }
  }
  if (wrong_at.empty()) return {};
  const bool is_below = wrong_at == std::set<int>{-1, 1, 2, 3, 63};
  const bool is_near = wrong_at.count(1) != 0 && *wrong_at.begin() > 0 && *wrong_at.rbegin() < 64;
  return judge::wrong(wrong_at == std::set<int>{0} ? bugs::kPowerNext
                      : is_below                   ? bugs::kPowerBelow
                      : is_near                    ? bugs::kPowerRounds
                                                   : bugs::kPowerWrong,
                      {first_wrong});
}

class M5Quantize : public testing::TestWithParam<QuantizeCase> {};

TEST_P(M5Quantize, GivesCodesAndScales) {
  const QuantizeCase& c = GetParam();
  judge::StageCase<QuantizeProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = (c.weights ? "weights E=" : "rows=") + std::to_string(c.num_matrices) +
                     (c.weights ? " N=" + std::to_string(c.n) : "") +
                     " D=" + std::to_string(c.depth) + (c.power_of_two ? " power_of_two" : "");
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t seed) { return make_quantize(c, seed); };
  stage_case.call = [&](const QuantizeProblem& p) { return call_quantize(c, p); };
  stage_case.judge = judge_quantize;
  stage_case.trace = [](const QuantizeProblem& p, const Outputs* outputs, judge::Place place) {
    Quantized got;
    if (outputs != nullptr) got = {outputs->values<Fp8>(0), outputs->values<float>(1)};
    return oracle::trace_of(p, outputs == nullptr ? nullptr : &got, place);
  };
  judge::run_case(stage_case);
}

class M5PowerOfTwo : public testing::TestWithParam<const char*> {};

// The function alone, and a call behind it.
TEST_P(M5PowerOfTwo, IsExact) {
  static constexpr QuantizeCase kCase = {"edge", "power", false, 1, 1, 16, Values::kDecades, true};
  judge::StageCase<QuantizeProblem> stage_case;
  stage_case.name = "edge/power";
  stage_case.shape = "2^-60 to 2^60 and the floats next to them";
  stage_case.before = judge::Suite::get().stopped() ? Verdict{} : ask_powers();
  stage_case.make = [](uint64_t seed) { return make_quantize(kCase, seed); };
  stage_case.call = [](const QuantizeProblem& p) { return call_quantize(kCase, p); };
  stage_case.judge = judge_quantize;
  judge::run_case(stage_case);
}

std::vector<QuantizeCase> cases_of(const std::string& group) {
  std::vector<QuantizeCase> chosen;
  for (const QuantizeCase& c : kQuantizeCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(edge, M5PowerOfTwo, testing::Values("power"), [](const auto& power) {
  return std::string(power.param);
});
INSTANTIATE_TEST_SUITE_P(tiny, M5Quantize, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M5Quantize, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M5Quantize, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M5Quantize, testing::ValuesIn(cases_of("refused")), name_of_case);

}  // namespace
}  // namespace moe
