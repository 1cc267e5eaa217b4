// How the output of m2's product is judged and explained, for every stage that computes it.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "far_offsets.h"
#include "judge/compare.h"
#include "judge/fuzz.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "m2_grouped_gemm_bugs.h"
#include "m2_grouped_gemm_cases.h"
#include "m2_grouped_gemm_oracle.h"
#include "m2_grouped_gemm_trace.h"
#include "row_faults.h"

namespace moe::m2_cases {

using judge::Outputs;
using judge::Verdict;

// What a stage calls the mistakes.
struct GemmMistakes {
  const std::vector<bugs::GemmModel>& models;
  RowFaults rows;
  const judge::Mistake& no_early_exit;
  const judge::Mistake& padding_read;
  int block_n;  // columns of a tile
};

inline std::vector<uint8_t> routed_rows(const GemmProblem& p) {
  std::vector<uint8_t> routed;
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id)
    routed.push_back(p.routed(flat_id) ? 1 : 0);
  return routed;
}

// Patterns in which rows and columns are wrong, for mistakes without a model.
inline std::vector<std::string> shape_of_error(const GemmProblem& p, const judge::Difference& d) {
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

// The mistakes that would give what `out` holds.
inline std::vector<judge::Mistake> explaining(const GemmMistakes& known,
                                              const GemmProblem& p,
                                              const std::vector<Bf16>& out,
                                              const judge::Matrix& want,
                                              const judge::Difference& difference) {
  const auto judged = routed_rows(p);
  const judge::ValueRules<Bf16> rules = {kPoison, p.exact, {}, judge::kModelSlack};
  auto mistakes = judge::explaining(known.models, p, out, want, difference, judged, rules);
  if (p.stale_tail) {  // which of two blocks stores last is left open: judge the wrong values only
    const auto agreed =
        judge::agreement(out, bugs::from_stale_tail(p), difference, judged, kPoison);
    if (agreed.on_wrong >= 0.99) mistakes.push_back(known.no_early_exit);
  }
  add_row_faults(known.rows, difference, p.n, known.block_n, mistakes);
  return mistakes;
}

inline Verdict judge_output(const GemmMistakes& known,
                            const GemmProblem& p,
                            const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm(p);
  const auto difference = judge::compare(out, want, routed_rows(p), kPoison, p.exact);
  if (difference.right) return judge_unrouted_rows(known.rows, p, out, kPoison);
  judge::note_wrong("out", want.rows, want.columns, difference.wrong, routed_rows(p));
  std::vector<std::string> evidence = {judge::describe(difference, "out")};
  for (std::string& line : shape_of_error(p, difference)) evidence.push_back(std::move(line));
  const auto mistakes = explaining(known, p, out, want, difference);
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  return judge::wrong_without_name("The output is wrong.", evidence, out, want, difference,
                                   routed_rows(p));
}

// A death at an address that only a null pointer to a row of A leads to; GPUs don't tell addresses.
inline Verdict explain_death(const judge::Mistake& padding_read,
                             const GemmProblem& p,
                             Verdict verdict) {
  constexpr std::string_view kAddress = "memory fault: address 0x";
  const size_t found = verdict.fault.find(kAddress);
  if (found == std::string::npos) return verdict;
  const auto address = std::stoull(verdict.fault.substr(found + kAddress.size()), nullptr, 16);
  if (address >= static_cast<size_t>(p.depth) * sizeof(Bf16)) return verdict;
  Verdict named = judge::wrong(padding_read, {verdict.sentence});
  named.state = verdict.state;
  named.fault = std::move(verdict.fault);
  return named;
}

inline judge::StageCase<GemmProblem> stage_case_of(const GemmMistakes& known, const GemmCase& c) {
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [c](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_of;
  stage_case.judge = [&known](const GemmProblem& p, const Outputs& outputs) {
    return judge_output(known, p, outputs);
  };
  stage_case.explain = [&known](const GemmProblem& p, const Outputs* outputs, Verdict verdict) {
    if (outputs == nullptr) return explain_death(known.padding_read, p, std::move(verdict));
    const auto judge_values = [&] { return judge_output(known, p, *outputs); };
    return explain_bytes_outside(known.rows, std::move(verdict), judge_values,
                                 static_cast<int64_t>(sizeof(Bf16)) * p.n);
  };
  stage_case.trace = [](const GemmProblem& p, const Outputs* outputs, judge::Place place) {
    return oracle::trace_of(p, outputs == nullptr ? std::vector<Bf16>() : outputs->values<Bf16>(0),
                            place);
  };
  return stage_case;
}

// ---- Random cases

struct RandomGemms {
  int most_tokens;
  int most_experts;
  int most_n;      // in eights
  int most_depth;  // likewise
  int smallest_block_m;
  int doublings;        // of block_m
  int refused_block_m;  // breaks the contract
};

inline judge::FuzzTarget random_gemms(const GemmMistakes& known, const RandomGemms& sizes) {
  const auto run = [&known, sizes](const std::string& name, const std::vector<int>& g) {
    GemmCase c = {"fuzz",
                  judge::kept(name.substr(5)),
                  g[0] == 0 ? kTokens : kSlots,
                  g[1],
                  g[2],
                  std::max(g[2], g[3]),
                  8 * g[4],
                  8 * g[5],
                  sizes.smallest_block_m << g[6],
                  kRandomLoads[g[7]],
                  static_cast<Data>(g[8])};
    c.refused = g[9] > 0;
    if (g[9] == 1) c.n += 4;
    if (g[9] == 2) c.depth += 4;
    if (g[9] == 3) c.block_m = sizes.refused_block_m;
    if (g[9] == 4) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
    return judge::judge_case(stage_case_of(known, c));
  };
  return {"gemm",
          {{"rows", 0, 1},
           {"T", 0, sizes.most_tokens},
           {"K", 1, 8},
           {"E", 1, sizes.most_experts},
           {"N/8", 1, sizes.most_n},
           {"D/8", 1, sizes.most_depth},
           {"block_m", 0, sizes.doublings},
           {"load", 0, kNumRandomLoads - 1},
           {"data", 0, 3},
           {"broken", 0, 4, true}},
          run};
}

// ---- Offsets past 2^31.

inline GemmProblem make_far(const FarCase& c, uint64_t seed) {
  judge::Random random(seed);
  GemmProblem p;
  set_far_row(c, p);
  for (int i = 0; i < p.depth; ++i) p.a.push_back(judge::to_bf16(random.integer(-2, 2)));
  for (int i = 0; i < p.n * p.depth; ++i) p.w.push_back(judge::to_bf16(random.integer(-2, 2)));
  return p;
}

inline Call call_far(const GemmProblem& p) {
  const int64_t n = p.n;
  const int64_t depth = p.depth;
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens, p.top_k,   p.num_experts,           p.n,
                   p.depth,      p.block_m, p.rows_are_slots ? 1 : 0};
  call.buffers = {
      last_part<Bf16>(judge::output<Bf16>("out", static_cast<size_t>(p.n), kPoison),
                      p.num_ids() * n),
      last_part<Bf16>(judge::input("a", p.a), p.rows_of_a() * depth),
      last_part<Bf16>(judge::input("w", p.w), p.num_experts * n * depth),
      judge::input("sorted_token_ids", p.sorted_token_ids),
      judge::input("expert_ids", p.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  return call;
}

inline Verdict judge_far(const judge::Mistake& offset32,
                         const GemmProblem& p,
                         const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm(last_row_of(p));
  const auto difference = judge::compare(out, want, {1}, kPoison, true);
  if (difference.right) return {};
  return judge::wrong(offset32, {judge::describe(difference, "out, last row,")});
}

inline judge::StageCase<GemmProblem> far_case_of(const judge::Mistake& offset32, const FarCase& c) {
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.shape = shape_of(c);
  stage_case.gpu_only = c.gpu_only;
  stage_case.make = [c](uint64_t seed) { return make_far(c, seed); };
  stage_case.call = call_far;
  stage_case.judge = [&offset32](const GemmProblem& p, const Outputs& outputs) {
    return judge_far(offset32, p, outputs);
  };
  stage_case.explain = [&offset32](const GemmProblem&, const Outputs*, Verdict verdict) {
    return explain_far_crash(offset32, std::move(verdict));
  };
  return stage_case;
}

}  // namespace moe::m2_cases
