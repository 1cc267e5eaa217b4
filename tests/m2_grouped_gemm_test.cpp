// Tests of m2_grouped_gemm: cases in three data regimes, judged row by row against double
// precision.
#include <drills/m2_grouped_gemm.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "judge/compare.h"
#include "judge/models.h"
#include "judge/suite.h"
#include "m1_align_oracle.h"
#include "m2_grouped_gemm_bugs.h"
#include "m2_grouped_gemm_oracle.h"
#include "m2_grouped_gemm_trace.h"
#include "routings.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::GemmProblem;

constexpr Bf16 kNan = 0x7fc0;
constexpr Bf16 kPoison = 0x7fa5;  // a NaN that no arithmetic makes

enum class Data {
  kExact,     // integers of -2 .. 2: every order of summation gives the same fp32 value
  kPositive,  // integers of 0 .. 2: sums pass 256, where bf16 sums would stop counting
  kNormal,    // normal, scaled so that outputs are near 1
  kSpread,    // magnitudes over eight powers of two from row to row
};

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
  bool refused = false;
  bool stale_tail =
      false;  // tables behind num_tokens_post_padded still hold an older, larger batch
};

constexpr Rows kTokens = Rows::kTokens;
constexpr Rows kSlots = Rows::kSlots;

constexpr GemmCase kCases[] = {
    // tiny: the example of the notes first
    {"tiny", "t4k2", kTokens, 4, 2, 3, 16, 16, 16, Load::kUniform, Data::kExact},
    {"tiny", "t4k2_slots", kSlots, 4, 2, 3, 16, 16, 16, Load::kUniform, Data::kExact},
    {"tiny", "t1k1", kTokens, 1, 1, 1, 8, 8, 16, Load::kUniform, Data::kExact},
    {"tiny", "one_tile", kTokens, 16, 1, 1, 64, 32, 16, Load::kUniform, Data::kExact},
    // edge: one hard thing each
    {"edge", "no_tokens", kTokens, 0, 2, 4, 16, 16, 16, Load::kUniform, Data::kExact},
    {"edge", "top2_tokens", kTokens, 19, 2, 3, 64, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "top2_slots", kSlots, 19, 2, 3, 64, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "n8", kTokens, 9, 2, 4, 8, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "n_tail", kSlots, 21, 2, 4, 72, 64, 16, Load::kUniform, Data::kExact},
    {"edge", "n_tail_long", kTokens, 10, 2, 4, 136, 32, 32, Load::kUniform, Data::kNormal},
    {"edge", "d8", kTokens, 9, 2, 4, 16, 8, 16, Load::kUniform, Data::kExact},
    {"edge", "d_tail", kSlots, 9, 2, 4, 64, 72, 16, Load::kUniform, Data::kNormal},
    {"edge", "d_tail_long", kTokens, 9, 2, 4, 24, 264, 32, Load::kUniform, Data::kExact},
    {"edge", "long_sums", kTokens, 12, 2, 2, 16, 512, 16, Load::kUniform, Data::kPositive},
    {"edge", "every_second_expert_empty", kTokens, 20, 2, 9, 32, 32, 16, Load::kEvenOnly,
     Data::kExact},
    {"edge", "one_expert_named_by_all", kSlots, 20, 2, 4, 32, 32, 16, Load::kOneExpert,
     Data::kExact},
    {"edge", "last_expert_named_by_all", kTokens, 10, 2, 8, 32, 32, 16, Load::kLastExpert,
     Data::kExact},
    {"edge", "ids_out_of_range", kSlots, 24, 3, 6, 32, 32, 16, Load::kUnrouted, Data::kExact},
    {"edge", "nothing_behind_the_end", kTokens, 18, 2, 8, 32, 32, 16, Load::kUniform, Data::kExact,
     false, true},
    {"edge", "k8", kTokens, 10, 8, 16, 32, 48, 16, Load::kUniform, Data::kNormal},
    {"edge", "block32", kSlots, 40, 2, 4, 64, 64, 32, Load::kUniform, Data::kExact},
    {"edge", "block64", kTokens, 70, 2, 3, 64, 64, 64, Load::kUniform, Data::kExact},
    {"edge", "block128", kSlots, 80, 2, 2, 72, 40, 128, Load::kUniform, Data::kExact},
    // random: values that are no integers, magnitudes that differ
    {"random", "tokens", kTokens, 33, 2, 8, 128, 128, 16, Load::kUniform, Data::kNormal},
    {"random", "slots", kSlots, 33, 2, 8, 136, 200, 32, Load::kSkewed, Data::kNormal},
    {"random", "spread", kTokens, 30, 4, 8, 64, 96, 16, Load::kUniform, Data::kSpread},
    {"random", "many_experts", kTokens, 17, 2, 64, 64, 64, 16, Load::kUniform, Data::kNormal},
    // refused: rules of the contract
    {"refused", "n12", kTokens, 4, 2, 3, 12, 16, 16, Load::kUniform, Data::kExact, true},
    {"refused", "d20", kTokens, 4, 2, 3, 16, 20, 16, Load::kUniform, Data::kExact, true},
    {"refused", "block48", kTokens, 4, 2, 3, 16, 16, 48, Load::kUniform, Data::kExact, true},
    {"refused", "k_exceeds_e", kTokens, 4, 4, 3, 16, 16, 16, Load::kAscending, Data::kExact, true},
};

std::string shape_of(const GemmCase& c) {
  return std::string(c.rows == kTokens ? "GEMM1" : "GEMM2") + " T=" + std::to_string(c.num_tokens) +
         " K=" + std::to_string(c.top_k) + " E=" + std::to_string(c.num_experts) +
         " N=" + std::to_string(c.n) + " D=" + std::to_string(c.depth) +
         " block_m=" + std::to_string(c.block_m);
}

double draw(Data data, int depth, judge::Random& random) {
  if (data == Data::kExact) return random.integer(-2, 2);
  if (data == Data::kPositive) return random.integer(0, 2);
  return random.normal() / std::sqrt(std::sqrt(static_cast<double>(depth)));
}

// Rows and experts that nobody may read hold NaN, so that a missing mask shows at once.
GemmProblem make_problem(const GemmCase& c, uint64_t seed) {
  judge::Random random(seed);
  GemmProblem p;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.n = c.n;
  p.depth = c.depth;
  p.block_m = c.block_m;
  p.rows_are_slots = c.rows == kSlots;
  p.stale_tail = c.stale_tail;
  p.exact = c.data == Data::kExact || c.data == Data::kPositive;
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
    read_rows.insert(p.rows_are_slots ? flat_id : flat_id / p.top_k);
    read_experts.insert(p.topk_ids[static_cast<size_t>(flat_id)]);
  }
  for (int row = 0; row < p.rows_of_a(); ++row) {
    const double scale = c.data == Data::kSpread ? std::ldexp(1.0, row % 9 - 4) : 1.0;
    for (int d = 0; d < p.depth; ++d) {
      const double value = scale * draw(c.data, p.depth, random);
      p.a.push_back(read_rows.count(row) != 0 ? judge::to_bf16(value) : kNan);
    }
  }
  for (int e = 0; e < p.num_experts; ++e) {
    for (int i = 0; i < p.n * p.depth; ++i) {
      const double value = draw(c.data, p.depth, random);
      p.w.push_back(read_experts.count(e) != 0 ? judge::to_bf16(value) : kNan);
    }
  }
  return p;
}

// Behind the end of the tables: what a larger batch would have left there, all of it legal to look
// at.
void leave_stale_tail(const GemmProblem& p,
                      std::vector<int32_t>& ids,
                      std::vector<int32_t>& experts) {
  for (size_t row = static_cast<size_t>(p.num_tokens_post_padded); row < ids.size(); ++row) {
    ids[row] = static_cast<int32_t>(row % static_cast<size_t>(p.num_ids()));
    experts[row / static_cast<size_t>(p.block_m)] = p.topk_ids[0];
  }
}

Call call_of(const GemmProblem& p) {
  std::vector<int32_t> ids = p.sorted_token_ids;
  std::vector<int32_t> experts = p.expert_ids;
  if (p.stale_tail) leave_stale_tail(p, ids, experts);
  // What lies behind x in memory: NaN for every row that a flat id used as a row would reach, and
  // for a tile that reads on behind the last row.
  constexpr size_t kTile = 128;
  const size_t behind =
      static_cast<size_t>(p.num_ids() - p.rows_of_a()) * static_cast<size_t>(p.depth) + kTile;
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens, p.top_k,   p.num_experts,           p.n,
                   p.depth,      p.block_m, p.rows_are_slots ? 1 : 0};
  call.buffers = {
      judge::output<Bf16>("out", static_cast<size_t>(p.num_ids()) * static_cast<size_t>(p.n),
                          kPoison),
      judge::input("a", p.a, std::vector<Bf16>(behind, kNan)),
      judge::input("w", p.w, std::vector<Bf16>(kTile, kNan)),
      judge::input("sorted_token_ids", ids),
      judge::input("expert_ids", experts),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  return call;
}

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

Verdict judge_untouched_rows(const GemmProblem& p, const std::vector<Bf16>& out) {
  for (int flat_id = 0; flat_id < p.num_ids(); ++flat_id) {
    if (p.routed(flat_id)) continue;
    for (int column = 0; column < p.n; ++column) {
      const Bf16 got = out[static_cast<size_t>(flat_id) * static_cast<size_t>(p.n) +
                           static_cast<size_t>(column)];
      if (got == kPoison) continue;
      return judge::wrong(bugs::kUnroutedStored,
                          {"flat id " + std::to_string(flat_id) + " has no expert, yet out[" +
                           std::to_string(flat_id) + "][" + std::to_string(column) + "] changed"});
    }
  }
  return {};
}

// The mistakes that would give what `out` holds.
std::vector<judge::Mistake> explaining(const GemmProblem& p,
                                       const std::vector<Bf16>& out,
                                       const judge::Matrix& want,
                                       const judge::Difference& difference) {
  const auto judged = routed_rows(p);
  auto mistakes = judge::explaining(bugs::gemm_models(), p, out, want, difference, judged,
                                    {"out", kPoison, p.exact});
  if (p.stale_tail) {  // which of two blocks stores last is left open: judge the wrong values only
    const auto agreed =
        judge::agreement(out, bugs::from_stale_tail(p), difference, judged, kPoison);
    if (agreed.on_wrong >= 0.99) mistakes.push_back(bugs::kNoEarlyExit);
  }
  // Zeros in the first columns of rows: what lies behind column N of the row before.
  const int spill = (64 - p.n % 64) % 64;
  if (difference.zero > 0 && difference.zero == difference.wrong_elements &&
      difference.columns.back() < spill) {
    mistakes.push_back(bugs::kColumnsSpill);
  }
  if (mistakes.empty() && difference.nan - difference.untouched > 0) {
    mistakes.push_back(bugs::kUninitialised);
  }
  return mistakes;
}

Verdict judge_output(const GemmProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm(p);
  const auto difference = judge::compare(out, want, routed_rows(p), kPoison, p.exact);
  if (difference.right) return judge_untouched_rows(p, out);
  judge::note_wrong("out", want.rows, want.columns, difference.wrong, routed_rows(p));
  std::vector<std::string> evidence = {judge::describe(difference, "out")};
  for (std::string& line : shape_of_error(p, difference)) evidence.push_back(std::move(line));
  const auto mistakes = explaining(p, out, want, difference);
  return mistakes.empty() ? judge::wrong("The output is wrong.", evidence)
                          : judge::wrong(mistakes, evidence);
}

// Writes outside `out`: named by the values if they say more, else padding rows (they reach one row
// behind the end) or columns behind N.
Verdict explain_memory(const GemmProblem& p, const Outputs* outputs, Verdict verdict) {
  if (verdict.outside_of != "out" || outputs == nullptr) return verdict;
  const auto out = outputs->values<Bf16>(0);
  const auto want = oracle::grouped_gemm(p);
  const auto difference = judge::compare(out, want, routed_rows(p), kPoison, p.exact);
  std::vector<judge::Mistake> mistakes;
  if (!difference.right) mistakes = explaining(p, out, want, difference);
  if (mistakes.empty() && verdict.outside_first >= 0) {
    const bool one_row = verdict.outside_last < static_cast<int64_t>(sizeof(Bf16)) * p.n;
    mistakes.push_back(one_row && difference.right ? bugs::kPadRowsStored : bugs::kColumnsSpill);
  }
  return mistakes.empty() ? verdict : judge::wrong(mistakes, verdict.evidence);
}

std::vector<std::string> trace_gemm(const GemmProblem& p,
                                    const Outputs* outputs,
                                    judge::Place place) {
  return oracle::trace_of(p, outputs == nullptr ? std::vector<Bf16>() : outputs->values<Bf16>(0),
                          place);
}

class M2GroupedGemm : public testing::TestWithParam<GemmCase> {};

TEST_P(M2GroupedGemm, MultipliesGatheredRows) {
  const GemmCase& c = GetParam();
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string(c.group) + "/" + c.name;
  stage_case.shape = shape_of(c);
  stage_case.refused = c.refused;
  stage_case.make = [&](uint64_t seed) { return make_problem(c, seed); };
  stage_case.call = call_of;
  stage_case.judge = judge_output;
  stage_case.explain = explain_memory;
  stage_case.trace = trace_gemm;
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

// ---- Offsets past 2^31. The arrays are sparse: only the parts that are used exist on our side.

struct FarCase {
  const char* name;
  Rows rows;
  int num_tokens;
  int top_k;
  int num_experts;
  int n;
  int depth;
  bool gpu_only;
};

constexpr FarCase kFarCases[] = {
    // The last expert's weights start at element 2^31: 4 GiB of address space, 128 KiB of data.
    {"expert", kTokens, 1, 1, 32769, 8, 8192, false},
    // out and a (one row per slot) pass 2^31 elements at the last flat id.
    {"out_row", kTokens, 32769, 8, 8, 8200, 16, true},
    {"a_row", kSlots, 32769, 8, 8, 16, 8200, true},
};

// Everything but the last token is unrouted; the last one goes to the last expert.
GemmProblem make_far(const FarCase& c, uint64_t seed) {
  judge::Random random(seed);
  GemmProblem p;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.n = c.n;
  p.depth = c.depth;
  p.block_m = 16;
  p.rows_are_slots = c.rows == kSlots;
  p.exact = true;
  p.first_expert = c.num_experts - 1;
  p.topk_ids.assign(static_cast<size_t>(p.num_ids()), -1);
  p.topk_ids.back() = c.num_experts - 1;
  const size_t capacity = align_capacity(p.num_tokens, p.top_k, p.num_experts, p.block_m);
  p.sorted_token_ids.assign(capacity, p.num_ids());
  p.expert_ids.assign(capacity / 16, -1);
  p.sorted_token_ids[0] = p.num_ids() - 1;
  p.expert_ids[0] = c.num_experts - 1;
  p.num_tokens_post_padded = 16;
  for (int i = 0; i < p.depth; ++i) p.a.push_back(judge::to_bf16(random.integer(-2, 2)));
  for (int i = 0; i < p.n * p.depth; ++i) p.w.push_back(judge::to_bf16(random.integer(-2, 2)));
  return p;
}

judge::HostBuffer last_part(judge::HostBuffer buffer, uint64_t elements) {
  buffer.sparse_bytes = elements * sizeof(Bf16);
  buffer.sparse_offset = buffer.sparse_bytes - buffer.payload.size();
  return buffer;
}

Call call_far(const GemmProblem& p) {
  const auto count = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<uint64_t>(a * b * c);
  };
  Call call;
  call.operation = 0;
  call.integers = {p.num_tokens, p.top_k,   p.num_experts,           p.n,
                   p.depth,      p.block_m, p.rows_are_slots ? 1 : 0};
  call.buffers = {last_part(judge::output<Bf16>("out", static_cast<size_t>(p.n), kPoison),
                            count(p.num_ids(), p.n, 1)),
                  last_part(judge::input("a", p.a), count(p.rows_of_a(), p.depth, 1)),
                  last_part(judge::input("w", p.w), count(p.num_experts, p.n, p.depth)),
                  judge::input("sorted_token_ids", p.sorted_token_ids),
                  judge::input("expert_ids", p.expert_ids),
                  judge::input("num_tokens_post_padded", std::vector<int32_t>{16})};
  return call;
}

Verdict judge_far(const GemmProblem& p, const Outputs& outputs) {
  GemmProblem last = p;  // the same, seen as one token with one slot
  last.num_tokens = last.top_k = 1;
  last.topk_ids = {p.num_experts - 1};
  const auto out = outputs.values<Bf16>(0);
  const auto difference = judge::compare(out, oracle::grouped_gemm(last), {1}, kPoison, true);
  if (difference.right) return {};
  return judge::wrong(bugs::kOffset32, {judge::describe(difference, "out, last row,")});
}

class M2FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M2FarOffsets, NeedInt64) {
  const FarCase& c = GetParam();
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.shape = "T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
                     " E=" + std::to_string(c.num_experts) + " N=" + std::to_string(c.n) +
                     " D=" + std::to_string(c.depth) + " block_m=16";
  stage_case.gpu_only = c.gpu_only;
  stage_case.make = [&](uint64_t seed) { return make_far(c, seed); };
  stage_case.call = call_far;
  stage_case.judge = judge_far;
  // A wrapped offset usually points outside the array.
  stage_case.explain = [](const GemmProblem&, const Outputs*, Verdict verdict) {
    if (verdict.state != judge::State::kCrash) return verdict;
    Verdict named = judge::wrong(bugs::kOffset32, {verdict.sentence});
    named.state = verdict.state;
    named.fault = verdict.fault;
    return named;
  };
  judge::run_case(stage_case);
}

INSTANTIATE_TEST_SUITE_P(far, M2FarOffsets, testing::ValuesIn(kFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

}  // namespace
}  // namespace moe

int main(int argc, char** argv) {
  return moe::judge::stage_main(
      argc, argv, "m2_grouped_gemm",
      {"m2.early_exit", "m2.gather", "m2.load", "m2.multiply", "m2.mainloop", "m2.store"},
      [] { moe::bugs::gemm_models(); });
}
