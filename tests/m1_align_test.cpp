// Tests of align: cases, and how an output is judged. The expected output is computed here, in the
// parent, after the child has answered. Those of route stand in m1_align_route_test.cpp.
#include <drills/m1_align.h>

#include <algorithm>
#include <map>
#include <string>

#include "judge/fuzz.h"
#include "judge/hidden.h"
#include "judge/suite.h"
#include "m1_align_bugs.h"
#include "m1_align_judge.h"
#include "m1_align_oracle.h"
#include "m1_align_trace.h"
#include "routings.h"

namespace moe {
namespace {

using bugs::AlignProblem;
using judge::Call;
using judge::Outputs;
using judge::Verdict;

constexpr int32_t kPoison = bugs::kPoisonId;
struct AlignCase {
  const char* group;
  const char* name;
  int num_tokens;
  int top_k;
  int num_experts;
  int block_m;
  Load load;
  bool refused = false;
};

constexpr AlignCase kAlignCases[] = {
    {"tiny", "t4k2", 4, 2, 3, 2, Load::kUniform},
    {"tiny", "t1k1", 1, 1, 1, 16, Load::kUniform},
    {"tiny", "block1", 5, 2, 3, 1, Load::kUniform},
    {"edge", "no_tokens", 0, 2, 4, 16, Load::kUniform},
    {"edge", "one_expert_named_by_all", 40, 2, 4, 16, Load::kOneExpert},
    {"edge", "first_expert_named_by_all", 33, 2, 8, 16, Load::kFirstExpert},
    {"edge", "last_expert_named_by_all", 33, 2, 8, 16, Load::kLastExpert},
    {"edge", "last_of_8_experts", 1, 1, 8, 16, Load::kLastExpert},
    {"edge", "every_second_expert_empty", 30, 2, 9, 8, Load::kEvenOnly},
    {"edge", "exact_multiples", 32, 2, 4, 16, Load::kAscending},
    {"edge", "one_more_than_multiple", 33, 1, 2, 16, Load::kAscending},
    {"edge", "fewer_experts_than_threads", 1, 2, 8, 16, Load::kUniform},
    {"edge", "buffer_is_not_a_multiple", 2, 1, 1, 16, Load::kUniform},
    {"edge", "ids_out_of_range", 50, 4, 16, 16, Load::kUnrouted},
    {"edge", "k_equals_e", 7, 5, 5, 4, Load::kUniform},
    {"edge", "k32", 9, 32, 40, 32, Load::kUniform},
    {"edge", "block256", 20, 3, 7, 256, Load::kUniform},
    {"edge", "e33", 40, 2, 33, 16, Load::kAscending},
    {"edge", "e96_one_row_each", 48, 2, 96, 16, Load::kAscending},
    {"edge", "e96_one_row_each_reversed", 48, 2, 96, 16, Load::kDescending},
    {"edge", "nobody_routed", 20, 2, 8, 16, Load::kNobody},
    {"edge", "e257", 64, 2, 257, 16, Load::kUniform},
    {"edge", "e1024", 30, 8, 1024, 16, Load::kUniform},
    {"edge", "more_than_1024_ids", 700, 2, 5, 64, Load::kUniform},
    {"edge", "more_than_65535_ids", 8200, 8, 8, 128, Load::kSkewed},
    {"edge", "e256_65536_ids", 8192, 8, 256, 64, Load::kUniform},
    {"random", "qwen3_like", 130, 8, 128, 64, Load::kUniform},
    {"random", "skewed", 257, 4, 64, 32, Load::kSkewed},
    {"random", "odd_block", 63, 3, 17, 13, Load::kUniform},
    {"refused", "e1025", 4, 1, 1025, 16, Load::kUniform, true},
    {"refused", "k33", 4, 33, 64, 16, Load::kUniform, true},
    {"refused", "k_exceeds_e", 4, 5, 4, 16, Load::kAscending, true},
    {"refused", "block257", 4, 1, 4, 257, Load::kUniform, true},
    {"refused", "block0", 4, 1, 4, 0, Load::kUniform, true},
};

std::string shape_of(const AlignCase& c) {
  return "align T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
         " E=" + std::to_string(c.num_experts) + " block_m=" + std::to_string(c.block_m);
}

AlignProblem make_align(const AlignCase& c, uint64_t seed) {
  AlignProblem p = {{}, c.num_tokens, c.top_k, c.num_experts, c.block_m};
  p.topk_ids = make_topk_ids(c.load, c.num_tokens, c.top_k, c.num_experts, seed);
  // The tiny case of the notes, whatever the seed says.
  if (std::string(c.name) == "t4k2") p.topk_ids = {0, 1, 1, 2, 0, 2, 1, 0};
  return p;
}

Call call_align(const AlignProblem& p, size_t workspace_bytes, bool refused) {
  // A refused call gets room for something, so that a call that goes on writes into our buffers.
  const size_t capacity =
      refused ? 4096 : align_capacity(p.num_tokens, p.top_k, p.num_experts, p.block_m);
  const size_t blocks = refused ? 4096 : capacity / static_cast<size_t>(p.block_m);
  Call call;
  call.operation = 1;
  call.integers = {p.num_tokens, p.top_k, p.num_experts, p.block_m,
                   static_cast<int64_t>(workspace_bytes)};
  call.buffers = {judge::output<int32_t>("sorted_token_ids", capacity, kPoison),
                  judge::output<int32_t>("expert_ids", blocks, kPoison),
                  judge::output<int32_t>("num_tokens_post_padded", 1, kPoison),
                  shaped(judge::input("topk_ids", p.topk_ids), p.top_k),
                  judge::workspace("workspace", workspace_bytes, 17)};
  return call;
}

// The order inside an expert is free: sort the rows of each run of blocks with one label.
oracle::Alignment canonical(oracle::Alignment a, int block_m) {
  for (size_t first = 0; first < a.expert_ids.size();) {
    size_t last = first;
    while (last < a.expert_ids.size() && a.expert_ids[last] == a.expert_ids[first]) ++last;
    const auto row = [&](size_t block) {
      return a.sorted_token_ids.begin() +
             static_cast<std::ptrdiff_t>(block * static_cast<size_t>(block_m));
    };
    std::sort(row(first), row(last));
    first = last;
  }
  return a;
}

// A model that says nothing of the tables claims that they are wrong.
bool explains(const oracle::Alignment& got,
              const oracle::Alignment& want,
              const oracle::Alignment& said) {
  const bool leaves_open =
      std::count(said.sorted_token_ids.begin(), said.sorted_token_ids.end(), bugs::kAny) > 0;
  const bool tables_right =
      got.sorted_token_ids == want.sorted_token_ids && got.expert_ids == want.expert_ids;
  if (leaves_open && tables_right) return false;
  Share share;
  for (size_t i = 0; i < want.sorted_token_ids.size(); ++i) {
    share.add(got.sorted_token_ids[i], want.sorted_token_ids[i], said.sorted_token_ids[i]);
  }
  for (size_t i = 0; i < want.expert_ids.size(); ++i) {
    share.add(got.expert_ids[i], want.expert_ids[i], said.expert_ids[i]);
  }
  share.add(got.num_tokens_post_padded, want.num_tokens_post_padded, said.num_tokens_post_padded);
  return share.names_it();
}

// What can be said without a model: the first difference of each output.
std::vector<std::string> differences(const oracle::Alignment& got,
                                     const oracle::Alignment& want,
                                     int32_t pad) {
  std::vector<std::string> lines;
  if (got.num_tokens_post_padded != want.num_tokens_post_padded) {
    lines.push_back("num_tokens_post_padded: got " + std::to_string(got.num_tokens_post_padded) +
                    ", want " + std::to_string(want.num_tokens_post_padded));
  }
  const auto first_difference = [&](const char* name, const std::vector<int32_t>& a,
                                    const std::vector<int32_t>& b) {
    size_t count = 0;
    size_t first = 0;
    size_t unwritten = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i] == b[i]) continue;
      if (count++ == 0) first = i;
      unwritten += a[i] == kPoison ? 1 : 0;
    }
    if (count == 0) return;
    lines.push_back(
        std::string(name) + ": " + std::to_string(count) + " of " + std::to_string(a.size()) +
        " wrong; first [" + std::to_string(first) + "]: got " +
        (a[first] == kPoison ? "nothing (never written)" : std::to_string(a[first])) + ", want " +
        std::to_string(b[first]) + (b[first] == pad ? " (the pad id)" : ""));
    if (unwritten > 0 && unwritten < count) {
      lines.back() += "; " + std::to_string(unwritten) + " never written";
    }
  };
  first_difference("expert_ids", got.expert_ids, want.expert_ids);
  first_difference("sorted_token_ids", got.sorted_token_ids, want.sorted_token_ids);
  std::map<int32_t, int> times;
  for (const int32_t id : got.sorted_token_ids) ++times[id];
  int missing = 0;
  int repeated = 0;
  for (const int32_t id : want.sorted_token_ids) {
    if (id == pad) continue;
    missing += times[id] == 0 ? 1 : 0;
    repeated += times[id] > 1 ? 1 : 0;
  }
  if (missing + repeated > 0) {
    lines.push_back("of the flat ids " + std::to_string(missing) + " are missing and " +
                    std::to_string(repeated) + " stand there more than once");
  }
  return lines;
}

oracle::Alignment alignment_of(const Outputs& outputs) {
  return {outputs.values<int32_t>(0), outputs.values<int32_t>(1), outputs.values<int32_t>(2)[0]};
}

Verdict judge_align(const AlignProblem& p, const Outputs& outputs) {
  oracle::Alignment got = alignment_of(outputs);
  const auto want = canonical(
      oracle::align(p.topk_ids, p.num_tokens, p.top_k, p.num_experts, p.block_m), p.block_m);
  // Sorted by the true labels where the labels are right; a wrong label is an error by itself.
  got = canonical(got, p.block_m);
  if (got.num_tokens_post_padded == want.num_tokens_post_padded &&
      got.expert_ids == want.expert_ids && got.sorted_token_ids == want.sorted_token_ids) {
    return {};
  }
  std::vector<uint8_t> wrong;
  for (size_t i = 0; i < want.sorted_token_ids.size(); ++i) {
    wrong.push_back(got.sorted_token_ids[i] != want.sorted_token_ids[i] ? 1 : 0);
  }
  judge::note_wrong("sorted_token_ids, one M block a row", std::ssize(want.expert_ids), p.block_m,
                    wrong);
  const auto evidence = differences(got, want, p.num_tokens * p.top_k);
  std::vector<judge::Mistake> mistakes;
  for (const bugs::AlignModel& model : bugs::align_models()) {
    if (explains(got, want, canonical(model.output(p), p.block_m)))
      mistakes.push_back(model.mistake);
  }
  if (!mistakes.empty()) return judge::wrong(mistakes, evidence);
  if (got.num_tokens_post_padded == want.num_tokens_post_padded &&
      got.expert_ids == want.expert_ids) {
    return judge::wrong_in("m1.scatter", "scatter",
                           "The blocks are right, the ids in them are not.", evidence);
  }
  return judge::wrong("The alignment is wrong.", evidence);
}

// The order of ids inside an expert may differ from run to run; nothing else may.
judge::Bytes canonical_bytes(const AlignProblem& p, const Outputs& outputs) {
  oracle::Alignment a;
  a.sorted_token_ids = outputs.values<int32_t>(0);
  a.expert_ids = outputs.values<int32_t>(1);
  a = canonical(a, p.block_m);
  std::vector<int32_t> all = outputs.values<int32_t>(2);
  all.insert(all.end(), a.sorted_token_ids.begin(), a.sorted_token_ids.end());
  all.insert(all.end(), a.expert_ids.begin(), a.expert_ids.end());
  return judge::bytes_of(all);
}

// A mistake in the counts often ends behind the end of an array, or in a death.
Verdict explain_align(const AlignProblem& p, const Outputs* outputs, Verdict verdict) {
  const bool unrouted = std::any_of(p.topk_ids.begin(), p.topk_ids.end(),
                                    [&](int32_t e) { return e < 0 || e >= p.num_experts; });
  if (outputs == nullptr && unrouted && verdict.state == judge::State::kCrash) {
    Verdict named = judge::wrong(bugs::kUnrouted, {verdict.sentence});
    named.state = verdict.state;
    named.fault = verdict.fault;
    return named;
  }
  if (outputs == nullptr || verdict.code != "OOB") return verdict;
  Verdict named = judge_align(p, *outputs);
  if (named.code.empty()) return verdict;
  named.evidence.insert(named.evidence.begin(), verdict.evidence.begin(), verdict.evidence.end());
  return named;
}

class M1Align : public testing::TestWithParam<AlignCase> {};

judge::StageCase<AlignProblem> stage_case_of(const AlignCase& c) {
  Verdict early;
  const int64_t bytes =
      judge::Suite::get().ask_value(1, {c.num_tokens, c.top_k, c.num_experts, c.block_m}, early);
  if (bytes < 0 || bytes > (int64_t{1} << 30)) {
    if (early.pass()) early = judge::wrong("align_workspace_bytes asks for more than 1 GiB.");
  }
  judge::StageCase<AlignProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.before = early;
  stage_case.make = [c](uint64_t seed) { return make_align(c, seed); };
  stage_case.call = [c, bytes](const AlignProblem& p) {
    return call_align(p, static_cast<size_t>(bytes), c.refused);
  };
  stage_case.judge = judge_align;
  stage_case.canonical = canonical_bytes;
  stage_case.explain = explain_align;
  stage_case.trace = [](const AlignProblem& p, const Outputs* outputs, judge::Place place) {
    const auto got =
        outputs == nullptr ? oracle::Alignment() : canonical(alignment_of(*outputs), p.block_m);
    return oracle::trace_of(p, outputs == nullptr ? nullptr : &got, place);
  };
  return stage_case;
}

TEST_P(M1Align, SortsFlatIdsByExpert) {
  judge::run_case(stage_case_of(GetParam()));
}

#define INSTANTIATE_GROUP(group)                                                             \
  INSTANTIATE_TEST_SUITE_P(group, M1Align, testing::ValuesIn(cases_of(kAlignCases, #group)), \
                           name_of_case)
INSTANTIATE_GROUP(tiny);
INSTANTIATE_GROUP(edge);
INSTANTIATE_GROUP(random);
INSTANTIATE_GROUP(refused);

INSTANTIATE_TEST_SUITE_P(hidden,
                         M1Align,
                         testing::ValuesIn(judge::hidden_cases(kAlignCases,
                                                               [](AlignCase& c, auto& random) {
                                                                 c.num_tokens +=
                                                                     random.integer(1, 90);
                                                                 c.num_experts +=
                                                                     random.integer(0, 20);
                                                                 c.block_m = random.integer(2, 80);
                                                               })),
                         name_of_case);

// ---- Random cases

// Breaks one rule of the contract, or none.
void break_rule(int rule, AlignCase& c) {
  c.refused = rule > 0;
  if (rule == 1) c.num_experts = 1025;
  if (rule == 2) c.top_k = 33, c.num_experts = 64;
  if (rule == 3) c.top_k = c.num_experts + 1, c.load = Load::kAscending;
  if (rule == 4) c.block_m = 257;
  if (rule == 5) c.block_m = 0;
}

judge::CaseResult run_random_align(const std::string& name, const std::vector<int>& g) {
  AlignCase c = {"fuzz", judge::kept(name.substr(5)), g[0], g[1], std::max(g[1], g[2]),
                 g[3],   kRandomLoads[g[4]]};
  break_rule(g[5], c);
  return judge::judge_case(stage_case_of(c));
}

const std::vector<judge::FuzzTarget> kRandomTargets = {{"align",
                                                        {{"T", 0, 300},
                                                         {"K", 1, 32},
                                                         {"E", 1, 1024},
                                                         {"block_m", 1, 256},
                                                         {"load", 0, 8},
                                                         {"broken", 0, 5, true}},
                                                        run_random_align},
                                                       random_routes()};

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(argc, argv, "m1_align",
                                {"m1.topk", "m1.weights", "m1.count", "m1.scan", "m1.scatter"},
                                moe::kRandomTargets, [] {
                                  moe::bugs::align_models();
                                  moe::bugs::route_models();
                                });
}
