// Tests of m3_weighted_epilogue. Cases of the whole layer come from layer_cases.h.
#include <drills/m3_weighted_epilogue.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "judge/suite.h"
#include "layer_bugs.h"
#include "layer_cases.h"
#include "m3_weighted_epilogue_bugs.h"
#include "m3_weighted_epilogue_cases.h"
#include "m3_weighted_epilogue_oracle.h"
#include "m3_weighted_epilogue_trace.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Outputs;
using judge::Verdict;
using oracle::CombineProblem;
using oracle::SiluProblem;
using oracle::WeightedProblem;
using namespace m3_cases;  // NOLINT(google-build-using-namespace): the other half of this file

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
  if (std::count(h.begin(), h.end(), kPoison) == std::ssize(h)) {
    return judge::wrong(bugs::kSiluNothing, {});
  }
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

judge::StageCase<SiluProblem> stage_case_of(const SiluCase& c) {
  judge::StageCase<SiluProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape =
      "silu_and_mul T*K=" + std::to_string(c.num_ids) + " I=" + std::to_string(c.intermediate_size);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_silu(c, seed); };
  stage_case.call = [c](const SiluProblem& p) { return call_silu(c, p); };
  stage_case.judge = [c](const SiluProblem& p, const Outputs& outputs) {
    return judge_silu(c, p, outputs);
  };
  stage_case.trace = trace_bf16<SiluProblem>;
  return stage_case;
}

TEST_P(M3Silu, MultipliesSiluOfGateByUp) {
  judge::run_case(stage_case_of(GetParam()));
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

judge::StageCase<WeightedProblem> stage_case_of(const WeightedCase& c) {
  judge::StageCase<WeightedProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = "weighted T=" + std::to_string(c.num_tokens) +
                     " K=" + std::to_string(c.top_k) + " E=" + std::to_string(c.num_experts) +
                     " N=" + std::to_string(c.n) + " D=" + std::to_string(c.depth) +
                     " block_m=" + std::to_string(c.block_m);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_weighted(c, seed); };
  stage_case.call = call_weighted;
  stage_case.judge = judge_weighted;
  stage_case.explain = [](const WeightedProblem&, const Outputs*, Verdict verdict) {
    if (verdict.outside_of != "out") return verdict;
    return judge::wrong(bugs::kWeightedSpill, verdict.evidence);
  };
  stage_case.trace = trace_bf16<WeightedProblem>;
  return stage_case;
}

TEST_P(M3Weighted, MultipliesEachRowByItsWeight) {
  judge::run_case(stage_case_of(GetParam()));
}

// ---- combine

Verdict judge_combine(const CombineProblem& p, const Outputs& outputs) {
  return judge::judge_matrix(bugs::combine_models(), p, outputs.values<Bf16>(0), oracle::combine(p),
                             std::vector<uint8_t>(static_cast<size_t>(p.num_tokens), 1),
                             {"out", kPoison, p.exact});
}

class M3Combine : public testing::TestWithParam<CombineCase> {};

judge::StageCase<CombineProblem> stage_case_of(const CombineCase& c) {
  judge::StageCase<CombineProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = "combine T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
                     " E=" + std::to_string(c.num_experts) + " H=" + std::to_string(c.hidden_size);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_combine(c, seed); };
  stage_case.call = call_combine;
  stage_case.judge = judge_combine;
  stage_case.trace = trace_bf16<CombineProblem>;
  return stage_case;
}

TEST_P(M3Combine, AddsTheSlotsOfAToken) {
  judge::run_case(stage_case_of(GetParam()));
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

INSTANTIATE_TEST_SUITE_P(hidden,
                         M3Weighted,
                         testing::ValuesIn(judge::hidden_cases(kWeightedCases,
                                                               [](WeightedCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 20);
                                                                 c.n = 8 * random.integer(2, 20);
                                                                 c.depth =
                                                                     8 * random.integer(2, 25);
                                                               })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden,
                         M3Combine,
                         testing::ValuesIn(judge::hidden_cases(kCombineCases,
                                                               [](CombineCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 20);
                                                                 c.hidden_size =
                                                                     8 * random.integer(2, 40);
                                                               })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden,
                         M3Layer,
                         testing::ValuesIn(layer_cases_of("hidden")),
                         name_of_case);

// ---- Random cases

judge::CaseResult run_random_silu(const std::string& name, const std::vector<int>& g) {
  SiluCase c = {"fuzz", judge::kept(name.substr(5)), g[0], 8 * g[1],
                g[2] == 0 ? Gates::kExact : Gates::kNormal};
  c.refused = g[3] > 0;
  if (g[3] == 1) c.intermediate_size += 4;
  if (g[3] == 2) c.num_ids = -1;
  return judge::judge_case(stage_case_of(c));
}

judge::CaseResult run_random_weighted(const std::string& name, const std::vector<int>& g) {
  WeightedCase c = {"fuzz",
                    judge::kept(name.substr(5)),
                    g[0] == 0 ? kTokens : kSlots,
                    g[1],
                    g[2],
                    std::max(g[2], g[3]),
                    8 * g[4],
                    8 * g[5],
                    16 << g[6],
                    kRandomLoads[g[7]],
                    static_cast<Weights>(g[8])};
  c.refused = g[9] > 0;
  if (g[9] == 1) c.n += 4;
  if (g[9] == 2) c.depth += 4;
  if (g[9] == 3) c.block_m = 48;
  return judge::judge_case(stage_case_of(c));
}

judge::CaseResult run_random_combine(const std::string& name, const std::vector<int>& g) {
  CombineCase c = {"fuzz",
                   judge::kept(name.substr(5)),
                   g[0],
                   g[1],
                   std::max(g[1], g[2]),
                   8 * g[3],
                   kRandomLoads[g[4]],
                   static_cast<Values>(g[5])};
  if (c.load == Load::kForeign) c.load = Load::kUniform;  // it has no tables
  c.refused = g[6] > 0;
  if (g[6] == 1) c.hidden_size += 4;
  if (g[6] == 2) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {
    {"silu",
     {{"T*K", 0, 200}, {"I/8", 1, 280}, {"normal", 0, 1}, {"broken", 0, 2, true}},
     run_random_silu},
    {"weighted",
     {{"rows", 0, 1},
      {"T", 0, 60},
      {"K", 1, 8},
      {"E", 1, 40},
      {"N/8", 1, 24},
      {"D/8", 1, 40},
      {"block_m", 0, 3},
      {"load", 0, kNumRandomLoads - 1},
      {"weights", 0, 3},
      {"broken", 0, 3, true}},
     run_random_weighted},
    {"combine",
     {{"T", 0, 60},
      {"K", 1, 32},
      {"E", 1, 60},
      {"H/8", 1, 280},
      {"load", 0, kNumRandomLoads - 1},
      {"values", 0, 2},
      {"broken", 0, 2, true}},
     run_random_combine},
    random_layers()};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(argc, argv, "m3_weighted_epilogue",
                                {"m3.swiglu", "m3.weight", "m3.combine", "m3.layer"},
                                moe::kRandomTargets, [] {
                                  moe::bugs::silu_models();
                                  moe::bugs::weighted_models();
                                  moe::bugs::combine_models();
                                  moe::bugs::layer_models({});
                                });
}
