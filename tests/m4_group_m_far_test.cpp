// Tests of m4_group_m's GEMM with offsets past 2^31.
#include <drills/m4_group_m.h>

#include <string>

#include "far_offsets.h"
#include "judge/suite.h"
#include "m4_group_m_bugs.h"
#include "m4_group_m_oracle.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::GemmProblem;

constexpr Bf16 kPoison = 0x7fa5;
constexpr GemmTile kTile = {32, 64, 4};

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
  call.integers = {p.num_tokens,
                   p.top_k,
                   p.num_experts,
                   p.n,
                   p.depth,
                   p.block_m,
                   kTile.block_n,
                   kTile.block_k,
                   kTile.group_m,
                   p.rows_are_slots ? 1 : 0,
                   0};
  call.buffers = {last_part<Bf16>(judge::output<Bf16>("out", static_cast<size_t>(p.n), kPoison),
                                  p.num_ids() * n),
                  judge::output<int32_t>("trace", 0, 0),
                  last_part<Bf16>(judge::input("a", p.a), p.rows_of_a() * depth),
                  last_part<Bf16>(judge::input("w", p.w), p.num_experts * n * depth),
                  judge::input("topk_weights", std::vector<float>{}),
                  judge::input("sorted_token_ids", p.sorted_token_ids),
                  judge::input("expert_ids", p.expert_ids),
                  judge::input("num_tokens_post_padded", std::vector<int32_t>{16})};
  call.buffers[1].null = call.buffers[4].null = true;
  return call;
}

Verdict judge_far(const GemmProblem& p, const Outputs& outputs) {
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm(last_row_of(p));
  const auto difference = judge::compare(out, want, {1}, kPoison, true);
  if (difference.right) return {};
  return judge::wrong(bugs::kEpilogueOffset32, {judge::describe(difference, "out, last row,")});
}

class M4FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M4FarOffsets, NeedInt64) {
  const FarCase& c = GetParam();
  judge::StageCase<GemmProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.shape = shape_of(c);
  stage_case.gpu_only = c.gpu_only;
  stage_case.make = [&](uint64_t seed) { return make_far(c, seed); };
  stage_case.call = call_far;
  stage_case.judge = judge_far;
  stage_case.explain = [](const GemmProblem&, const Outputs*, Verdict verdict) {
    return explain_far_crash(bugs::kEpilogueOffset32, std::move(verdict));
  };
  judge::run_case(stage_case);
}

INSTANTIATE_TEST_SUITE_P(far, M4FarOffsets, testing::ValuesIn(kFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

}  // namespace
}  // namespace moe
