// Tests of m7_warp_specialized: both GEMMs in three data regimes, rings that wrap at every place,
// SiLU from a table. Rows are judged through the table, as the caller reads them.
#include <drills/m7_warp_specialized.h>

#include <algorithm>
#include <set>
#include <string>

#include "judge/compare.h"
#include "judge/fuzz.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "m3_weighted_epilogue_oracle.h"
#include "m7_warp_specialized_bugs.h"
#include "m7_warp_specialized_cases.h"
#include "m7_warp_specialized_oracle.h"
#include "m7_warp_specialized_trace.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::SortedProblem;
using namespace m7_cases;  // NOLINT(google-build-using-namespace): the other half of this file

std::vector<uint8_t> real_rows(const SortedProblem& p) {
  std::vector<uint8_t> real;
  for (int row = 0; row < p.capacity(); ++row) real.push_back(p.is_real(row) ? 1 : 0);
  return real;
}

// Which rows are wrong, in the terms of the kernel: blocks, consumers, experts.
std::string rows_of_error(const SortedProblem& p, const judge::Difference& d) {
  std::set<int> halves;
  std::set<int> experts;
  for (const int64_t row : d.rows) {
    halves.insert(static_cast<int>(row) % 128 / 64);
    experts.insert(p.expert_of(static_cast<int>(row)));
  }
  std::string text = "row " + std::to_string(d.rows.front()) + " is flat id " +
                     std::to_string(p.flat_id(static_cast<int>(d.rows.front())));
  const auto real = real_rows(p);
  const bool several = std::count(real.begin(), real.end(), 1) > 64;
  if (several && halves.size() == 1) {
    text += "; all wrong rows are consumer " + std::to_string(*halves.begin()) + "'s";
  }
  if (p.num_experts > 1 && experts.size() == 1) {
    text += "; all of expert " + std::to_string(*experts.begin());
  }
  return text;
}

// Rows behind the end and rows of nobody's blocks must be as they were.
Verdict judge_untouched_rows(const SortedProblem& p, const std::vector<Bf16>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const int row = static_cast<int>(i / static_cast<size_t>(p.columns()));
    if (p.expert_of(row) >= 0 || out[i] == kPoison) continue;
    const bool behind = row >= p.num_tokens_post_padded;
    return judge::wrong(
        behind ? bugs::kSortedNoEnd : bugs::kSortedNobody,
        {"row " + std::to_string(row) + " of out changed; num_tokens_post_padded is " +
         std::to_string(p.num_tokens_post_padded) + ", expert_ids[" + std::to_string(row / 128) +
         "] is " + std::to_string(p.expert_ids[static_cast<size_t>(row / 128)])});
  }
  return {};
}

Verdict judge_gemm(const SortedProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::sorted_gemm(p);
  const auto judged = real_rows(p);
  const auto difference = judge::compare(out, want, judged, kPoison, p.exact);
  if (difference.right) return judge_untouched_rows(p, out);
  judge::note_wrong("out", want.rows, want.columns, difference.wrong, judged);
  auto evidence = judge::shape_of_error(difference, "out", p.columns());
  evidence.push_back(rows_of_error(p, difference));
  auto mistakes = judge::explaining(bugs::sorted_models(), p, out, want, difference, judged,
                                    {kPoison, p.exact, {}, judge::kModelSlack});
  if (mistakes.empty() && difference.untouched > 0 &&
      difference.untouched == difference.wrong_elements) {
    mistakes.push_back(bugs::kHeldTile);
  }
  if (mistakes.empty() && difference.nan > difference.untouched) {
    mistakes.push_back(bugs::kSortedNan);
  }
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  return judge::wrong_without_name("`out` is wrong.", evidence, out, want, difference, judged);
}

// A report of the emulator says what happened and where; the mistake behind it says why.
Verdict explain_fault(const SortedProblem&, const Outputs*, Verdict verdict) {
  const judge::Mistake* mistake = bugs::mistake_of_fault(verdict.fault);
  if (mistake == nullptr) return verdict;
  Verdict named = judge::wrong(*mistake, {verdict.sentence});
  named.state = verdict.state;
  named.fault = verdict.fault;
  return named;
}

std::vector<std::string> trace_gemm(const SortedProblem& p,
                                    const Outputs* outputs,
                                    judge::Place place) {
  return oracle::trace_of(p, outputs == nullptr ? std::vector<Bf16>() : outputs->values<Bf16>(0),
                          place);
}

judge::StageCase<SortedProblem> stage_case_of(const GemmCase& c) {
  judge::StageCase<SortedProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(sizes_of(c));
  stage_case.refused = c.twist == Twist::kRefused;
  stage_case.gpu_only = c.twist == Twist::kGpuOnly;
  stage_case.make = [c](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_gemm;
  stage_case.judge = judge_gemm;
  stage_case.explain = explain_fault;
  stage_case.trace = trace_gemm;
  return stage_case;
}

class M7Gemm : public testing::TestWithParam<GemmCase> {};

TEST_P(M7Gemm, MultipliesSortedRows) {
  judge::run_case(stage_case_of(GetParam()));
}

// ---- SiLU: gates that a row picks from a table, up 1, 2 or -1. A token is one unit vector, so the
// sums are exact.

constexpr float kGates[] = {0.0f,   -0.0f, 1.0f,   -1.0f,   0x1p-10f, -0x1p-10f, 8.0f,      -8.0f,
                            -16.0f, 20.0f, -20.0f, -21.0f,  -30.0f,   -44.0f,    88.0f,     -88.0f,
                            104.0f, 30.0f, 104.0f, -104.0f, 3e38f,    -3e38f,    0x1p-126f, -64.0f};
constexpr int kNumGates = static_cast<int>(sizeof kGates / sizeof kGates[0]);

SortedProblem make_silu_table(uint64_t seed) {
  judge::Random random(seed);
  SortedProblem p;
  p.num_tokens = 8;
  p.top_k = 1;
  p.num_experts = 1;
  p.hidden_size = 8;
  p.intermediate_size = 8 * kNumGates;
  p.topk_ids.assign(8, 0);
  make_table(p);
  for (int token = 0; token < 8; ++token) {
    for (int d = 0; d < 8; ++d) p.a.push_back(judge::to_bf16(d == token ? 1.0 : 0.0));
  }
  // Token d meets column d of w13. Each gate has neighbours that are large and small: four of them
  // may share a reciprocal.
  for (int row = 0; row < 2 * p.intermediate_size; ++row) {
    for (int d = 0; d < 8; ++d) {
      const bool is_gate = row < p.intermediate_size;
      const int choice = row < kNumGates ? row : random.integer(0, kNumGates - 1);
      constexpr double kUps[] = {1.0, 2.0, -1.0};
      const double value =
          is_gate ? static_cast<double>(kGates[choice]) : kUps[random.integer(0, 2)];
      p.w.push_back(judge::to_bf16(value));
    }
  }
  return p;
}

const judge::Mistake kSiluGates = {"M7-SILU", "m7.silu", "silu", "SiLU is wrong for some gates."};

Verdict judge_silu_table(const SortedProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < p.columns(); ++column) {
      const double gate = oracle::dot(p, p.row_of_a(row), 0, column);
      const double up = oracle::dot(p, p.row_of_a(row), 0, p.columns() + column);
      const double want = oracle::silu(gate) * up;
      const auto index = static_cast<size_t>(row * p.columns() + column);
      const double got = static_cast<double>(judge::to_float(out[index]));
      // The contract's 1e-6 of the value is far below one ulp of bf16. The largest gate times two
      // is more than bf16 holds.
      const bool overflows =
          judge::is_nan(judge::to_bf16(want)) || (judge::to_bf16(want) & 0x7fff) == 0x7f80;
      const double allowed = judge::bf16_ulp(want) + 6e-8 * std::fabs(up);
      if (overflows ? std::isinf(got) : std::fabs(got - want) <= allowed) continue;
      return judge::wrong(kSiluGates,
                          {"silu(" + std::to_string(gate) + ") * " + std::to_string(up) + ": got " +
                           std::to_string(got) + ", want " + std::to_string(want) + ", row " +
                           std::to_string(row) + " column " + std::to_string(column)});
    }
  }
  return {};
}

class M7SiluTable : public testing::TestWithParam<const char*> {};

TEST_P(M7SiluTable, HoldsForAllGates) {
  judge::StageCase<SortedProblem> stage_case;
  stage_case.name = std::string("edge/") + GetParam();
  stage_case.make = make_silu_table;
  stage_case.shape = shape_of(make_silu_table(0));
  stage_case.call = call_gemm;
  stage_case.judge = judge_silu_table;
  stage_case.explain = explain_fault;
  stage_case.trace = trace_gemm;
  judge::run_case(stage_case);
}

// ---- instances

std::vector<GemmCase> in_group(const std::string& group) {
  std::vector<GemmCase> chosen;
  for (const GemmCase& c : kGemmCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M7Gemm, testing::ValuesIn(in_group("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M7Gemm, testing::ValuesIn(in_group("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge,
                         M7SiluTable,
                         testing::Values("gemm1_silu_table"),
                         [](const auto& one) { return std::string(one.param); });
INSTANTIATE_TEST_SUITE_P(ring, M7Gemm, testing::ValuesIn(in_group("ring")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M7Gemm, testing::ValuesIn(in_group("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M7Gemm, testing::ValuesIn(in_group("refused")), name_of_case);

// ---- Random cases

judge::CaseResult run_random(const std::string& name, const std::vector<int>& g) {
  // Rows of GEMM2 that are positive only are a matter of its sums; GEMM1 takes the other three.
  constexpr Data kGemm1Data[] = {Data::kExact, Data::kNormal, Data::kSpread, Data::kExact};
  const bool is_gemm1 = g[0] == 0;
  GemmCase c = {"fuzz",
                judge::kept(name.substr(5)),
                is_gemm1,
                g[1],
                g[2],
                std::max(g[2], g[3]),
                8 * g[4],
                8 * g[5],
                kRandomLoads[g[6]],
                is_gemm1 ? kGemm1Data[g[7]] : static_cast<Data>(g[7])};
  if (g[8] > 0) c.twist = Twist::kRefused;
  if (g[8] == 1) c.hidden_size += 4;
  if (g[8] == 2) c.intermediate_size += 4;
  if (g[8] == 3) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"gemm",
                                                        {{"gemm", 0, 1},
                                                         {"T", 0, 300},
                                                         {"K", 1, 8},
                                                         {"E", 1, 20},
                                                         {"H/8", 1, 40},
                                                         {"I/8", 1, 40},
                                                         {"load", 0, kNumRandomLoads - 1},
                                                         {"data", 0, 3},
                                                         {"broken", 0, 3, true}},
                                                        run_random}};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m7_warp_specialized",
      {"m7.silu", "m7.barriers", "m7.gather_rows", "m7.produce", "m7.gather", "m7.last",
       "m7.store_slab", "m7.consume", "m7.release", "m7.next_tile", "m7.mainloop", "m7.pack"},
      moe::kRandomTargets, [] {
        moe::bugs::sorted_models();
        moe::bugs::mistake_of_fault("");
      });
}
