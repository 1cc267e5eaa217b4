// Tests of m5_block_fp8 with offsets past 2^31.
#include <drills/m5_block_fp8.h>

#include <string>

#include "far_offsets.h"
#include "judge/suite.h"
#include "m5_block_fp8_bugs.h"
#include "m5_block_fp8_judge.h"
#include "m5_block_fp8_oracle.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Fp8;
using judge::Outputs;
using judge::Verdict;
using oracle::Fp8GemmProblem;
using oracle::QuantizeProblem;

constexpr Bf16 kPoison = 0x7fa5;

// ---- GEMM

constexpr FarCase kFarCases[] = {
    // The last expert's codes start at element 2^31: 2 GiB of address space, 64 KiB of data.
    {"expert", false, 1, 1, 32769, 8, 8192, false},
    // out and a_codes (one row per slot) pass 2^31 elements at the last flat id.
    {"out_row", false, 32769, 8, 8, 8200, 16, true},
    {"a_row", true, 32769, 8, 8, 16, 8208, true},
};

Fp8GemmProblem make_far(const FarCase& c, uint64_t seed) {
  judge::Random random(seed);
  Fp8GemmProblem p;
  set_far_row(c, p);
  for (int i = 0; i < p.depth; ++i) p.a_codes.push_back(judge::to_e4m3(random.integer(-2, 2)));
  for (int i = 0; i < p.n * p.depth; ++i)
    p.w_codes.push_back(judge::to_e4m3(random.integer(-2, 2)));
  for (int i = 0; i < p.k_blocks(); ++i)
    p.a_scales.push_back(random.integer(0, 1) == 0 ? 1.0f : 2.0f);
  for (int i = 0; i < p.n_blocks() * p.k_blocks(); ++i) {
    p.w_scales.push_back(random.integer(0, 1) == 0 ? 1.0f : 0.5f);
  }
  return p;
}

Call call_far(const Fp8GemmProblem& p) {
  const int64_t rows = p.rows_of_a();
  const int64_t experts = p.num_experts;
  Call call;
  call.operation = 2;
  call.integers = {
      p.num_tokens, p.top_k, p.num_experts, p.n, p.depth, p.block_m, p.rows_are_slots ? 1 : 0, 0};
  call.buffers = {
      last_part<Bf16>(judge::output<Bf16>("out", static_cast<size_t>(p.n), kPoison),
                      static_cast<int64_t>(p.num_ids()) * p.n),
      last_part<Fp8>(judge::input("a_codes", p.a_codes), rows * p.depth),
      last_part<float>(judge::input("a_scales", p.a_scales), rows * p.k_blocks()),
      last_part<Fp8>(judge::input("w_codes", p.w_codes), experts * p.n * p.depth),
      last_part<float>(judge::input("w_scales", p.w_scales), experts * p.n_blocks() * p.k_blocks()),
      judge::input("topk_weights", std::vector<float>{}),
      judge::input("sorted_token_ids", p.sorted_token_ids),
      judge::input("expert_ids", p.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{16})};
  call.buffers[5].null = true;
  return call;
}

Verdict judge_far(const Fp8GemmProblem& p, const Outputs& outputs) {
  const Fp8GemmProblem last = last_row_of(p);
  const auto out = outputs.values<Bf16>(0);
  const auto want = oracle::grouped_gemm_fp8(last);
  const auto difference = judge::compare(out, want, {1}, kPoison, true);
  if (difference.right) return {};
  auto mistakes = explaining(last, out, want, difference, kPoison);
  if (mistakes.empty()) mistakes.push_back(bugs::kFp8Offset32);
  return judge::wrong(mistakes, {judge::describe(difference, "out, last row,")});
}

class M5FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M5FarOffsets, NeedInt64) {
  const FarCase& c = GetParam();
  judge::StageCase<Fp8GemmProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.shape = shape_of(c);
  stage_case.gpu_only = c.gpu_only;
  stage_case.make = [&](uint64_t seed) { return make_far(c, seed); };
  stage_case.call = call_far;
  stage_case.judge = judge_far;
  stage_case.explain = [](const Fp8GemmProblem&, const Outputs*, Verdict verdict) {
    return explain_far_crash(bugs::kFp8Offset32, std::move(verdict));
  };
  judge::run_case(stage_case);
}

INSTANTIATE_TEST_SUITE_P(far, M5FarOffsets, testing::ValuesIn(kFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

// ---- Quantisers: the last row, and the last expert.

struct FarQuantizeCase {
  const char* name;
  bool weights;
  int num_matrices;
  int n;
  int depth;
};

constexpr FarQuantizeCase kFarQuantizeCases[] = {
    {"quantize_rows", false, 262152, 1, 8208},
    {"quantize_weights", true, 513, 512, 8192},
};

class M5FarQuantize : public testing::TestWithParam<FarQuantizeCase> {};

TEST_P(M5FarQuantize, NeedsInt64) {
  const FarQuantizeCase& c = GetParam();
  judge::StageCase<QuantizeProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.shape = "last of " + std::to_string(c.num_matrices) + " matrices of " +
                     std::to_string(c.n) + " x " + std::to_string(c.depth);
  stage_case.gpu_only = true;
  stage_case.make = [&](uint64_t seed) {  // the last matrix alone
    judge::Random random(seed);
    QuantizeProblem p = {1, c.n, c.depth, false, {}};
    for (int i = 0; i < c.n * c.depth; ++i) p.values.push_back(judge::to_bf16(random.normal()));
    return p;
  };
  stage_case.call = [&](const QuantizeProblem& p) {
    const int64_t elements = static_cast<int64_t>(c.num_matrices) * c.n * c.depth;
    const int scales = scale_blocks(c.n) * scale_blocks(c.depth);
    Call call;
    call.operation = c.weights ? 1 : 0;
    call.integers = {c.num_matrices, c.depth, 0};
    if (c.weights) call.integers = {c.num_matrices, c.n, c.depth, 0};
    call.buffers = {
        last_part<Fp8>(judge::output<Fp8>("codes", p.values.size(), bugs::kPoisonCode), elements),
        last_part<float>(
            judge::output<judge::Fp32>("scales", static_cast<size_t>(scales), bugs::kPoisonBits),
            static_cast<int64_t>(c.num_matrices) * scales),
        last_part<Bf16>(judge::input("values", p.values), elements)};
    return call;
  };
  stage_case.judge = [](const QuantizeProblem& p, const Outputs& outputs) -> Verdict {
    const auto want = oracle::quantize(p);
    if (outputs.values<Fp8>(0) == want.codes && outputs.values<float>(1) == want.scales) return {};
    return judge::wrong(bugs::kFp8Offset32, {"codes or scales of the last part are wrong"});
  };
  stage_case.explain = [](const QuantizeProblem&, const Outputs*, Verdict verdict) {
    return explain_far_crash(bugs::kFp8Offset32, std::move(verdict));
  };
  judge::run_case(stage_case);
}

INSTANTIATE_TEST_SUITE_P(far,
                         M5FarQuantize,
                         testing::ValuesIn(kFarQuantizeCases),
                         [](const auto& far) { return std::string(far.param.name); });

}  // namespace
}  // namespace moe
