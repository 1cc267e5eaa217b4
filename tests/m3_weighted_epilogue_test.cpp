// Tests of m3_weighted_epilogue. Cases of the whole layer come from layer_cases.h.
#include <drills/m3_weighted_epilogue.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "judge/suite.h"
#include "layer_bugs.h"
#include "layer_cases.h"
#include "m1_align_oracle.h"
#include "m3_weighted_epilogue_bugs.h"
#include "m3_weighted_epilogue_oracle.h"
#include "m3_weighted_epilogue_trace.h"
#include "routings.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::CombineProblem;
using oracle::SiluProblem;
using oracle::WeightedProblem;

constexpr Bf16 kNan = 0x7fc0;
constexpr Bf16 kPoison = 0x7fa5;  // a NaN that no arithmetic makes

template <class Case, size_t N>
std::vector<Case> cases_of(const Case (&all)[N], const std::string& group) {
  std::vector<Case> chosen;
  std::copy_if(std::begin(all), std::end(all), std::back_inserter(chosen),
               [&](const Case& c) { return c.group == group; });
  return chosen;
}

// How a value of a bf16 output is formed.
template <class Problem>
std::vector<std::string> trace_bf16(const Problem& p, const Outputs* outputs, judge::Place place) {
  return oracle::trace_of(p, outputs == nullptr ? std::vector<Bf16>() : outputs->values<Bf16>(0),
                          place);
}

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

constexpr SiluCase kSiluCases[] = {
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
constexpr Bf16 kTable[] = {0x0000, 0x8000, 0x3f80, 0xbf80, 0x42b0, 0xc2b0,
                           0x42d0, 0xc2d0, 0x7f7f, 0xff7f, 0x0001, kNan};

SiluProblem make_silu(const SiluCase& c, uint64_t seed) {
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

Call call_silu(const SiluCase& c, const SiluProblem& p) {
  Call call;
  call.operation = 0;
  call.integers = {c.num_ids, c.intermediate_size};
  call.buffers = {judge::output<Bf16>("h", p.gate_up.size() / 2, kPoison),
                  judge::input("gate_up", p.gate_up)};
  return call;
}

// One value of the table: one bf16 step, fp32's own error, and 0 where |silu| is below 2^-118.
bool silu_is_right(Bf16 got, double gate, double up) {
  const double want = oracle::silu(gate) * up;
  const double value = static_cast<double>(judge::to_float(got));
  if (std::isnan(want)) return judge::is_nan(got) && got != kPoison;
  if (judge::is_nan(got)) return false;
  if (value == static_cast<double>(judge::to_float(judge::to_bf16(want)))) return true;
  const double allowed =
      judge::bf16_ulp(want) + (gate < -87.0 ? std::ldexp(std::fabs(up), -118) : 0.0);
  return std::fabs(value - want) <= allowed;
}

// What the wrong values look like, one by one; a pass where all are right.
Verdict judge_silu_values(const SiluProblem& p, const std::vector<Bf16>& h) {
  std::string first;
  int wrong = 0;
  int not_finite = 0;
  std::vector<uint8_t> flags(h.size(), 0);
  for (size_t i = 0; i < h.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / p.intermediate_size;
    const auto column = static_cast<int64_t>(i) % p.intermediate_size;
    const double gate = p.value(row, column);
    const double up = p.value(row, column + p.intermediate_size);
    if (silu_is_right(h[i], gate, up)) continue;
    flags[i] = 1;
    not_finite += (h[i] & 0x7f80) == 0x7f80 && h[i] != kPoison ? 1 : 0;
    if (wrong++ > 0) continue;
    char text[160];
    std::snprintf(text, sizeof text, "silu(%g) * %g: got %g, want %g", gate, up,
                  static_cast<double>(judge::to_float(h[i])), oracle::silu(gate) * up);
    first = text;
  }
  if (wrong == 0) return {};
  judge::note_wrong("h", p.num_ids, p.intermediate_size, flags);
  const std::vector<std::string> evidence = {
      std::to_string(wrong) + " of " + std::to_string(h.size()) + " values wrong; first " + first};
  return not_finite == wrong ? judge::wrong(bugs::kSiluOverflow, evidence)
                             : judge::wrong("`h` is wrong.", evidence);
}

Verdict judge_silu(const SiluCase& c, const SiluProblem& p, const Outputs& outputs) {
  const auto h = outputs.values<Bf16>(0);
  if (c.gates == Gates::kTable) return judge_silu_values(p, h);
  const auto verdict = judge::judge_matrix(bugs::silu_models(), p, h, oracle::silu_and_mul(p),
                                           std::vector<uint8_t>(static_cast<size_t>(p.num_ids), 1),
                                           {"h", kPoison, p.exact});
  if (verdict.pass() || !verdict.code.empty()) return verdict;
  const Verdict of_values = judge_silu_values(p, h);
  return of_values.code.empty() ? verdict : of_values;
}

class M3Silu : public testing::TestWithParam<SiluCase> {};

TEST_P(M3Silu, MultipliesSiluOfGateByUp) {
  const SiluCase& c = GetParam();
  judge::StageCase<SiluProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape =
      "silu_and_mul T*K=" + std::to_string(c.num_ids) + " I=" + std::to_string(c.intermediate_size);
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t seed) { return make_silu(c, seed); };
  stage_case.call = [&](const SiluProblem& p) { return call_silu(c, p); };
  stage_case.judge = [&](const SiluProblem& p, const Outputs& outputs) {
    return judge_silu(c, p, outputs);
  };
  stage_case.trace = trace_bf16<SiluProblem>;
  judge::run_case(stage_case);
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

constexpr Rows kTokens = Rows::kTokens;
constexpr Rows kSlots = Rows::kSlots;

constexpr WeightedCase kWeightedCases[] = {
    {"tiny", "t4k2", kSlots, 4, 2, 3, 16, 16, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "no_tokens", kSlots, 0, 2, 4, 16, 16, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "k1", kSlots, 10, 1, 3, 24, 32, 16, Load::kUniform, Weights::kPowers},
    {"edge", "rows_are_tokens", kTokens, 19, 2, 3, 64, 64, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "n_tail", kSlots, 21, 2, 4, 72, 64, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "n8_d8", kSlots, 21, 2, 4, 8, 8, 16, Load::kUniform, Weights::kPowers},
    {"edge", "d_tail", kSlots, 9, 2, 4, 64, 264, 16, Load::kUniform, Weights::kDistinct},
    {"edge", "ids_out_of_range", kSlots, 24, 3, 6, 32, 32, 16, Load::kUnrouted, Weights::kDistinct},
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

float draw_weight(Weights weights, int flat_id, judge::Random& random) {
  if (weights == Weights::kDistinct || weights == Weights::kLongSums)
    return 1.0f + static_cast<float>(flat_id) / 1024.0f;
  if (weights == Weights::kPowers) return std::ldexp(1.0f, flat_id % 7 - 4);
  return static_cast<float>(0.02 + 0.98 * random.uniform());
}

// As in m2: what nobody may read is NaN, weights of slots without an expert too.
WeightedProblem make_weighted(const WeightedCase& c, uint64_t seed) {
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

Call call_weighted(const WeightedProblem& p) {
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
      judge::output<Bf16>("out", static_cast<size_t>(g.num_ids()) * static_cast<size_t>(g.n),
                          kPoison),
      judge::input("a", g.a, std::vector<Bf16>(behind, kNan)),
      judge::input("w", g.w),
      judge::input("topk_weights", p.topk_weights, no_weights),
      judge::input("sorted_token_ids", g.sorted_token_ids),
      judge::input("expert_ids", g.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{g.num_tokens_post_padded})};
  return call;
}

Verdict judge_weighted(const WeightedProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto width = static_cast<size_t>(p.gemm.n);
  std::vector<uint8_t> routed;
  for (int id = 0; id < p.gemm.num_ids(); ++id) routed.push_back(p.gemm.routed(id) ? 1 : 0);
  const Verdict verdict =
      judge::judge_matrix(bugs::weighted_models(), p, out, oracle::grouped_gemm_weighted(p), routed,
                          {"out", kPoison, p.gemm.exact});
  if (!verdict.pass()) return verdict;
  for (size_t i = 0; i < out.size(); ++i) {
    if (routed[i / width] != 0 || out[i] == kPoison) continue;
    return judge::wrong("A row of out without a routed flat id was written.",
                        {"flat id " + std::to_string(i / width) + " has no expert"});
  }
  return {};
}

class M3Weighted : public testing::TestWithParam<WeightedCase> {};

TEST_P(M3Weighted, MultipliesEachRowByItsWeight) {
  const WeightedCase& c = GetParam();
  judge::StageCase<WeightedProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = "weighted T=" + std::to_string(c.num_tokens) +
                     " K=" + std::to_string(c.top_k) + " E=" + std::to_string(c.num_experts) +
                     " N=" + std::to_string(c.n) + " D=" + std::to_string(c.depth) +
                     " block_m=" + std::to_string(c.block_m);
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t seed) { return make_weighted(c, seed); };
  stage_case.call = call_weighted;
  stage_case.judge = judge_weighted;
  stage_case.explain = [](const WeightedProblem&, const Outputs*, Verdict verdict) {
    if (verdict.outside_of != "out") return verdict;
    return judge::wrong(bugs::kWeightedSpill, verdict.evidence);
  };
  stage_case.trace = trace_bf16<WeightedProblem>;
  judge::run_case(stage_case);
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

constexpr CombineCase kCombineCases[] = {
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
    {"edge", "combine_most_tokens_empty", 40, 1, 6, 32, Load::kUnrouted, Values::kExact},
    {"random", "combine", 33, 4, 8, 136, Load::kUniform, Values::kNormal},
    {"random", "combine_spread", 21, 8, 16, 64, Load::kUnrouted, Values::kSpread},
    {"refused", "combine_h12", 4, 2, 3, 12, Load::kUniform, Values::kExact, true},
    {"refused", "combine_k_exceeds_e", 4, 4, 3, 16, Load::kAscending, Values::kExact, true},
};

CombineProblem make_combine(const CombineCase& c, uint64_t seed) {
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

Call call_combine(const CombineProblem& p) {
  Call call;
  call.operation = 2;
  call.integers = {p.num_tokens, p.top_k, p.hidden_size, p.num_experts};
  call.buffers = {judge::output<Bf16>("out", p.y.size() / static_cast<size_t>(p.top_k), kPoison),
                  judge::input("y", p.y), judge::input("topk_ids", p.topk_ids)};
  return call;
}

Verdict judge_combine(const CombineProblem& p, const Outputs& outputs) {
  return judge::judge_matrix(bugs::combine_models(), p, outputs.values<Bf16>(0), oracle::combine(p),
                             std::vector<uint8_t>(static_cast<size_t>(p.num_tokens), 1),
                             {"out", kPoison, p.exact});
}

class M3Combine : public testing::TestWithParam<CombineCase> {};

TEST_P(M3Combine, AddsTheSlotsOfAToken) {
  const CombineCase& c = GetParam();
  judge::StageCase<CombineProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = "combine T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
                     " E=" + std::to_string(c.num_experts) + " H=" + std::to_string(c.hidden_size);
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t seed) { return make_combine(c, seed); };
  stage_case.call = call_combine;
  stage_case.judge = judge_combine;
  stage_case.trace = trace_bf16<CombineProblem>;
  judge::run_case(stage_case);
}

// ---- moe_layer

class M3Layer : public testing::TestWithParam<LayerCase> {};

TEST_P(M3Layer, MatchesDoublePrecision) {
  judge::run_case(layer_stage_case(GetParam()));
}

const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

#define INSTANTIATE_GROUP(group)                                                                   \
  INSTANTIATE_TEST_SUITE_P(group, M3Silu, testing::ValuesIn(cases_of(kSiluCases, #group)),         \
                           name_of_case);                                                          \
  INSTANTIATE_TEST_SUITE_P(group, M3Weighted, testing::ValuesIn(cases_of(kWeightedCases, #group)), \
                           name_of_case);                                                          \
  INSTANTIATE_TEST_SUITE_P(group, M3Combine, testing::ValuesIn(cases_of(kCombineCases, #group)),   \
                           name_of_case);                                                          \
  INSTANTIATE_TEST_SUITE_P(group, M3Layer, testing::ValuesIn(layer_cases_of(#group)), name_of_case)
INSTANTIATE_GROUP(tiny);
INSTANTIATE_GROUP(edge);
INSTANTIATE_GROUP(random);
INSTANTIATE_GROUP(refused);

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(argc, argv, "m3_weighted_epilogue",
                                {"m3.swiglu", "m3.weight", "m3.combine", "m3.layer"}, [] {
                                  moe::bugs::silu_models();
                                  moe::bugs::weighted_models();
                                  moe::bugs::combine_models();
                                  moe::bugs::layer_models({});
                                });
}
