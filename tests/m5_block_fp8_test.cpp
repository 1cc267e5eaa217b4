// Tests of the GEMM of m5_block_fp8, in bf16 and fp32 outputs, judged row by row against double
// precision on the same codes. Those of the quantisers are in m5_block_fp8_quantize_test.cpp.
#include <drills/m5_block_fp8.h>

#include <algorithm>
#include <string>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "m5_block_fp8_bugs.h"
#include "m5_block_fp8_cases.h"
#include "m5_block_fp8_judge.h"
#include "m5_block_fp8_oracle.h"
#include "m5_block_fp8_trace.h"
#include "row_faults.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Fp32;
using judge::Outputs;
using judge::Verdict;
using oracle::Fp8GemmProblem;
using namespace m5_cases;  // NOLINT(google-build-using-namespace): the other half of this file

// ---- Judging, for either type of output

const RowFaults kRowFaults = {bugs::kFp8PadRowsStored, bugs::kFp8ColumnsSpill,
                              bugs::kFp8Uninitialised, bugs::kFp8Unrouted};

// Rows with a NaN code among their operands must be NaN.
template <class T>
Verdict judge_nan_rows(const Fp8GemmProblem& p, const std::vector<T>& out, T poison) {
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t flat_id = i / static_cast<size_t>(p.n);
    const bool must_be_nan = !p.nan_rows.empty() && p.nan_rows[flat_id] != 0;
    if (!must_be_nan || !p.routed(static_cast<int>(flat_id))) continue;
    if (out[i] != poison && judge::is_nan(out[i])) continue;
    return judge::wrong(bugs::kFp8NanLost,
                        {"out[" + std::to_string(flat_id) + "][" +
                         std::to_string(i % static_cast<size_t>(p.n)) + "] is no NaN"});
  }
  return {};
}

template <class T>
Verdict judge_values(const Fp8GemmProblem& p, const std::vector<T>& out, T poison) {
  const auto want = oracle::grouped_gemm_fp8(p);
  const auto difference = judge::compare(out, want, judged_rows(p), poison, p.exact);
  if (difference.right) {
    Verdict verdict = judge_unrouted_rows(kRowFaults, p, out, poison);
    return verdict.pass() ? judge_nan_rows(p, out, poison) : verdict;
  }
  judge::note_wrong("out", want.rows, want.columns, difference.wrong, judged_rows(p));
  const auto evidence = judge::shape_of_error(difference, "out", p.n);
  auto mistakes = explaining(p, out, want, difference, poison);
  add_row_faults(kRowFaults, difference, p.n, 128, mistakes);
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  return judge::wrong_without_name("The output is wrong.", evidence, out, want, difference,
                                   judged_rows(p));
}

Verdict judge_output(const Fp8GemmProblem& p, const Outputs& outputs) {
  return p.out_fp32 ? judge_values(p, outputs.values<Fp32>(0), kPoisonFp32)
                    : judge_values(p, outputs.values<Bf16>(0), kPoisonBf16);
}

std::string got_text(const Fp8GemmProblem& p, const Outputs& outputs, judge::Place place) {
  const auto index = static_cast<size_t>(place.row * p.n + place.column);
  if (place.row >= p.num_ids() || place.column >= p.n) return {};
  const float value = p.out_fp32 ? judge::to_float(outputs.values<Fp32>(0)[index])
                                 : judge::to_float(outputs.values<Bf16>(0)[index]);
  return judge::number_text(static_cast<double>(value));
}

judge::StageCase<Fp8GemmProblem> stage_case_of(const GemmCase& c) {
  judge::StageCase<Fp8GemmProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_of;
  stage_case.judge = judge_output;
  stage_case.explain = [](const Fp8GemmProblem& p, const Outputs* outputs, Verdict verdict) {
    if (outputs == nullptr) return verdict;
    const auto judge_again = [&] { return judge_output(p, *outputs); };
    const size_t bytes = p.out_fp32 ? sizeof(Fp32) : sizeof(Bf16);
    return explain_bytes_outside(kRowFaults, std::move(verdict), judge_again,
                                 static_cast<int64_t>(bytes) * p.n);
  };
  stage_case.trace = [](const Fp8GemmProblem& p, const Outputs* outputs, judge::Place place) {
    return oracle::trace_of(p, outputs == nullptr ? "" : got_text(p, *outputs, place), place);
  };
  return stage_case;
}

class M5BlockFp8 : public testing::TestWithParam<GemmCase> {};

TEST_P(M5BlockFp8, ScalesEveryBlock) {
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

INSTANTIATE_TEST_SUITE_P(tiny, M5BlockFp8, testing::ValuesIn(cases_of("tiny")), name_of_case);
INSTANTIATE_TEST_SUITE_P(edge, M5BlockFp8, testing::ValuesIn(cases_of("edge")), name_of_case);
INSTANTIATE_TEST_SUITE_P(random, M5BlockFp8, testing::ValuesIn(cases_of("random")), name_of_case);
INSTANTIATE_TEST_SUITE_P(hidden,
                         M5BlockFp8,
                         testing::ValuesIn(judge::hidden_cases(kCases,
                                                               [](GemmCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 9);
                                                                 c.num_experts +=
                                                                     random.integer(0, 3);
                                                                 c.n = 8 * random.integer(2, 20);
                                                                 if (c.depth < 1000) {
                                                                   c.depth =
                                                                       16 * random.integer(8, 40);
                                                                 }
                                                               })),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(refused, M5BlockFp8, testing::ValuesIn(cases_of("refused")), name_of_case);

// ---- Random cases

judge::CaseResult run_random(const std::string& name, const std::vector<int>& g) {
  GemmCase c = {"fuzz",
                judge::kept(name.substr(5)),
                g[0] == 0 ? kTokens : kSlots,
                g[1],
                g[2],
                std::max(g[2], g[3]),
                8 * g[4],
                16 * g[5],
                16 << g[6],
                kRandomLoads[g[7]],
                static_cast<Data>(g[8] + 1),
                g[9] == 0 ? Out::kFp32 : Out::kBf16,
                g[10] == 0 ? kNone : kGiven};
  c.refused = g[11] > 0;
  if (g[11] == 1) c.n += 4;
  if (g[11] == 2) c.depth += 8;
  if (g[11] == 3) c.block_m = 48;
  if (g[11] == 4) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"gemm",
                                                        {{"rows", 0, 1},
                                                         {"T", 0, 40},
                                                         {"K", 1, 6},
                                                         {"E", 1, 20},
                                                         {"N/8", 1, 50},
                                                         {"D/16", 1, 40},
                                                         {"block_m", 0, 3},
                                                         {"load", 0, kNumRandomLoads - 1},
                                                         {"data", 0, 3},
                                                         {"bf16", 0, 1},
                                                         {"weights", 0, 1},
                                                         {"broken", 0, 4, true}},
                                                        run_random}};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m5_block_fp8",
      {"m5.power", "m5.amax", "m5.scale", "m5.encode", "m5.block", "m5.scale_rows", "m5.scales",
       "m5.multiply", "m5.promote", "m5.store"},
      moe::kRandomTargets, [] {
        moe::bugs::quantize_models();
        moe::bugs::fp8_gemm_models();
      });
}
