// Tests of m2_grouped_gemm: cases in three data regimes, judged row by row against double
// precision.
#include <drills/m2_grouped_gemm.h>

#include <algorithm>
#include <set>
#include <string>

#include "far_offsets.h"
#include "judge/compare.h"
#include "judge/fuzz.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "m2_grouped_gemm_bugs.h"
#include "m2_grouped_gemm_cases.h"
#include "m2_grouped_gemm_oracle.h"
#include "row_faults.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::GemmProblem;
using namespace m2_cases;  // NOLINT(google-build-using-namespace): the other half of this file

std::vector<uint8_t> routed_rows(const GemmProblem& p) {
  std::vector<uint8_t> routed;
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id)
    routed.push_back(p.routed(flat_id) ? 1 : 0);
  return routed;
}

// Patterns in which rows and columns are wrong, for mistakes without a model.
std::vector<std::string> shape_of_error(const GemmProblem& p, const judge::Difference& d) {
  std::vector<std::string> lines;
  std::set<int> slots;
  std::set<int> experts;
  for (const int64_t row : d.rows) {
    slots.insert(static_cast<int>(row) % p.top_k);
    experts.insert(p.topk_ids[static_cast<size_t>(row)]);
  }
  const auto routed = routed_rows(p);
  const auto total = std::count(routed.begin(), routed.end(), 1);
  std::string rows = std::to_string(d.rows.size()) + " of " + std::to_string(total) + " rows";
  if (p.top_k > 1 && slots.size() == 1) rows += ", all of slot " + std::to_string(*slots.begin());
  if (p.num_experts > 1 && experts.size() == 1) {
    rows += ", all of expert " + std::to_string(*experts.begin());
  }
  lines.push_back("wrong: " + rows);
  if (!d.columns.empty() && static_cast<int>(d.columns.size()) < p.n) {
    lines.back() += "; columns " + std::to_string(d.columns.front()) + " to " +
                    std::to_string(d.columns.back()) + ", " + std::to_string(d.columns.size()) +
                    " of " + std::to_string(p.n);
  }
  const auto share = [&](int64_t count, const char* what) {
    if (count > 0) lines.push_back(std::to_string(count) + " of the wrong values " + what);
  };
  share(d.untouched, "were never written");
  share(d.nan - d.untouched, "are NaN");
  share(d.zero, "are 0");
  return lines;
}

const RowFaults kRowFaults = {bugs::kPadRowsStored, bugs::kColumnsSpill, bugs::kUninitialised,
                              bugs::kUnroutedRow};

// The mistakes that would give what `out` holds.
std::vector<judge::Mistake> explaining(const GemmProblem& p,
                                       const std::vector<Bf16>& out,
                                       const judge::Matrix& want,
                                       const judge::Difference& difference) {
  const auto judged = routed_rows(p);
  const judge::ValueRules<Bf16> rules = {kPoison, p.exact, {}, judge::kModelSlack};
  auto mistakes = judge::explaining(bugs::gemm_models(), p, out, want, difference, judged, rules);
  if (p.stale_tail) {  // which of two blocks stores last is left open: judge the wrong values only
    const auto agreed =
        judge::agreement(out, bugs::from_stale_tail(p), difference, judged, kPoison);
    if (agreed.on_wrong >= 0.99) mistakes.push_back(bugs::kNoEarlyExit);
  }
  add_row_faults(kRowFaults, difference, p.n, 64, mistakes);
  return mistakes;
}

Verdict judge_output(const GemmProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm(p);
  const auto difference = judge::compare(out, want, routed_rows(p), kPoison, p.exact);
  if (difference.right) return judge_unrouted_rows(kRowFaults, p, out, kPoison);
  std::vector<std::string> evidence = {judge::describe(difference, "out")};
  for (std::string& line : shape_of_error(p, difference)) evidence.push_back(std::move(line));
  const auto mistakes = explaining(p, out, want, difference);
  return mistakes.empty() ? judge::wrong("The output is wrong.", evidence)
                          : judge::wrong(mistakes, evidence);
}

judge::StageCase<GemmProblem> stage_case_of(const GemmCase& c) {
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_of;
  stage_case.judge = judge_output;
  stage_case.explain = [](const GemmProblem& p, const Outputs* outputs, Verdict verdict) {
    if (outputs == nullptr) return verdict;
    const auto judge_values = [&] { return judge_output(p, *outputs); };
    return explain_bytes_outside(kRowFaults, std::move(verdict), judge_values,
                                 static_cast<int64_t>(sizeof(Bf16)) * p.n);
  };
  return stage_case;
}

class M2GroupedGemm : public testing::TestWithParam<GemmCase> {};

TEST_P(M2GroupedGemm, MultipliesGatheredRows) {
  judge::run_case(stage_case_of(GetParam()));
}

std::vector<GemmCase> cases_of(const std::string& group) {
  std::vector<GemmCase> chosen;
  for (const GemmCase& c : kCases) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

INSTANTIATE_TEST_SUITE_P(tiny, M2GroupedGemm, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M2GroupedGemm, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random,
                         M2GroupedGemm,
                         testing::ValuesIn(cases_of("random")),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(refused,
                         M2GroupedGemm,
                         testing::ValuesIn(cases_of("refused")),
                         name_of_case);

// ---- Offsets past 2^31.

constexpr FarCase kFarCases[] = {
    // The last expert's weights start at element 2^31: 4 GiB of address space, 128 KiB of data.
    {"expert", false, 1, 1, 32769, 8, 8192, false},
    // out and a (one row per slot) pass 2^31 elements at the last flat id.
    {"out_row", false, 32769, 8, 8, 8200, 16, true},
    {"a_row", true, 32769, 8, 8, 16, 8200, true},
};

GemmProblem make_far(const FarCase& c, uint64_t seed) {
  judge::Random random(seed);
  GemmProblem p;
  set_far_row(c, p);
  for (int i = 0; i < p.depth; ++i) p.a.push_back(judge::to_bf16(random.integer(-2, 2)));
  for (int i = 0; i < p.n * p.depth; ++i) p.w.push_back(judge::to_bf16(random.integer(-2, 2)));
  return p;
}

Call call_far(const GemmProblem& p) {
  const int64_t n = p.n;
  const int64_t depth = p.depth;
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens, p.top_k,   p.num_experts,           p.n,
                   p.depth,      p.block_m, p.rows_are_slots ? 1 : 0};
  call.buffers = {last_part<Bf16>(judge::output<Bf16>("out", static_cast<size_t>(p.n), kPoison),
                                  p.num_ids() * n),
                  last_part<Bf16>(judge::input("a", p.a), p.rows_of_a() * depth),
                  last_part<Bf16>(judge::input("w", p.w), p.num_experts * n * depth),
                  judge::input("sorted_token_ids", p.sorted_token_ids),
                  judge::input("expert_ids", p.expert_ids),
                  judge::input("num_tokens_post_padded", std::vector<int32_t>{16})};
  return call;
}

Verdict judge_far(const GemmProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm(last_row_of(p));
  const auto difference = judge::compare(out, want, {1}, kPoison, true);
  if (difference.right) return {};
  return judge::wrong(bugs::kOffset32, {judge::describe(difference, "out, last row,")});
}

class M2FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M2FarOffsets, NeedInt64) {
  const FarCase& c = GetParam();
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.shape = shape_of(c);
  stage_case.gpu_only = c.gpu_only;
  stage_case.make = [&](uint64_t seed) { return make_far(c, seed); };
  stage_case.call = call_far;
  stage_case.judge = judge_far;
  stage_case.explain = [](const GemmProblem&, const Outputs*, Verdict verdict) {
    return explain_far_crash(bugs::kOffset32, std::move(verdict));
  };
  judge::run_case(stage_case);
}

INSTANTIATE_TEST_SUITE_P(far, M2FarOffsets, testing::ValuesIn(kFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

// ---- Random cases

judge::CaseResult run_random(const std::string& name, const std::vector<int>& g) {
  GemmCase c = {"fuzz",
                judge::kept(name.substr(5)),
                g[0] == 0 ? kTokens : kSlots,
                g[1],
                g[2],
                std::max(g[2], g[3]),
                8 * g[4],
                8 * g[5],
                16 << g[6],
                kRandomLoads[g[7]],
                static_cast<Data>(g[8])};
  c.refused = g[9] > 0;
  if (g[9] == 1) c.n += 4;
  if (g[9] == 2) c.depth += 4;
  if (g[9] == 3) c.block_m = 48;
  if (g[9] == 4) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"gemm",
                                                        {{"rows", 0, 1},
                                                         {"T", 0, 60},
                                                         {"K", 1, 8},
                                                         {"E", 1, 40},
                                                         {"N/8", 1, 24},
                                                         {"D/8", 1, 40},
                                                         {"block_m", 0, 3},
                                                         {"load", 0, kNumRandomLoads - 1},
                                                         {"data", 0, 3},
                                                         {"broken", 0, 4, true}},
                                                        run_random}};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m2_grouped_gemm",
      {"m2.early_exit", "m2.gather", "m2.load", "m2.multiply", "m2.mainloop", "m2.store"},
      moe::kRandomTargets);
}
