// Tests of m7_warp_specialized with offsets past 2^31. The arrays are sparse: only the parts that
// are used exist on our side.
#include <drills/m7_warp_specialized.h>

#include <algorithm>
#include <string>
#include <vector>

#include "judge/compare.h"
#include "judge/suite.h"
#include "m3_weighted_epilogue_oracle.h"
#include "m7_warp_specialized_bugs.h"
#include "m7_warp_specialized_cases.h"
#include "m7_warp_specialized_oracle.h"

namespace moe {
namespace {

using judge::Bf16;
using judge::Call;
using judge::Outputs;
using judge::Verdict;
using oracle::SortedProblem;
using namespace m7_cases;  // NOLINT(google-build-using-namespace): the other half of this file

struct FarCase {
  const char* name;
  bool is_gemm1;
  int num_tokens, top_k, num_experts, hidden_size, intermediate_size;
  bool gpu_only;
};

constexpr FarCase kFarCases[] = {
    // The last expert's weights start at element 2^31: 4 GiB of address space, 128 KiB of data.
    {"expert", kGemm2, 1, 1, 32769, 8, 8192, false},
    // x has 2^31 elements in front of the last token's row.
    {"x_row", kGemm1, 262145, 1, 1, 8192, 8, true},
    // y and h have 2^31 elements in front of the last block.
    {"y_row", kGemm2, 32769, 8, 8, 8200, 16, true},
    {"h_row", kGemm2, 32769, 8, 8, 16, 8200, true},
};

// One real row: the last token's, in the last block, of the last expert. Blocks in front of it
// belong to nobody.
SortedProblem make_far(const FarCase& c, uint64_t seed) {
  judge::Random random(seed);
  SortedProblem p;
  p.is_gemm1 = c.is_gemm1;
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.hidden_size = c.hidden_size;
  p.intermediate_size = c.intermediate_size;
  p.exact = true;
  p.first_expert = c.num_experts - 1;
  const size_t capacity =
      align_capacity(p.num_tokens, p.top_k, p.num_experts, oracle::kSortedBlock) /
      oracle::kSortedBlock * oracle::kSortedBlock;
  p.sorted_token_ids.assign(std::max(capacity, static_cast<size_t>(oracle::kSortedBlock)),
                            p.num_ids());
  p.expert_ids.assign(p.sorted_token_ids.size() / oracle::kSortedBlock, -1);
  p.expert_ids.back() = c.num_experts - 1;
  const int row = p.capacity() - oracle::kSortedBlock;
  p.sorted_token_ids[static_cast<size_t>(row)] = p.num_ids() - 1;
  p.num_tokens_post_padded = p.capacity();
  p.first_row = p.row_of_a(row);
  const int rows_of_a = p.is_gemm1 ? 1 : oracle::kSortedBlock;
  for (int i = 0; i < rows_of_a * p.depth(); ++i) {
    p.a.push_back(i < p.depth() ? judge::to_bf16(random.integer(3, 4)) : kNan);
  }
  for (int i = 0; i < p.rows_of_w() * p.depth(); ++i) {
    const bool is_gate = p.is_gemm1 && i < p.intermediate_size * p.depth();
    // A gate near 100 from 8192 terms: few of them are not 0.
    const int value = is_gate ? (i % 256 == 0 ? 1 : 0) : random.integer(-2, 2);
    p.w.push_back(judge::to_bf16(value));
  }
  return p;
}

judge::HostBuffer last_part(judge::HostBuffer buffer, uint64_t elements) {
  buffer.sparse_bytes = elements * sizeof(Bf16);
  buffer.sparse_offset = buffer.sparse_bytes - buffer.payload.size();
  return buffer;
}

Call call_far(const SortedProblem& p) {
  const auto count = [](int64_t a, int64_t b, int64_t c) {
    return static_cast<uint64_t>(a * b * c);
  };
  std::vector<float> weights;
  if (!p.is_gemm1) weights.assign(static_cast<size_t>(p.num_ids()), judge::to_float(kNan));
  if (!p.is_gemm1) weights.back() = 1.0f;
  Call call;
  call.operation = p.is_gemm1 ? 0 : 1;
  call.integers = {p.num_tokens, p.top_k, p.num_experts, p.hidden_size, p.intermediate_size};
  const auto block = static_cast<size_t>(oracle::kSortedBlock) * static_cast<size_t>(p.columns());
  call.buffers = {
      last_part(judge::output<Bf16>("out", block, kPoison), count(p.capacity(), p.columns(), 1)),
      last_part(judge::input("a", p.a),
                count(p.is_gemm1 ? p.num_tokens : p.capacity(), p.depth(), 1)),
      last_part(judge::input("w", p.w), count(p.num_experts, p.rows_of_w(), p.depth())),
      judge::input("topk_weights", weights),
      judge::input("sorted_token_ids", p.sorted_token_ids),
      judge::input("expert_ids", p.expert_ids),
      judge::input("num_tokens_post_padded", std::vector<int32_t>{p.num_tokens_post_padded})};
  call.buffers[3].null = weights.empty();
  return call;
}

Verdict judge_far(const SortedProblem& p, const Outputs& outputs) {
  const int row = p.capacity() - oracle::kSortedBlock;
  judge::Matrix want = {1, p.columns(), {}};
  for (int column = 0; column < p.columns(); ++column) {
    const double sum = oracle::dot(p, p.row_of_a(row), p.num_experts - 1, column);
    const double up =
        p.is_gemm1 ? oracle::dot(p, p.row_of_a(row), p.num_experts - 1, p.columns() + column) : 0.0;
    want.values.push_back(p.is_gemm1 ? oracle::silu(sum) * up : sum);
  }
  auto out = outputs.values<Bf16>(0);
  out.resize(static_cast<size_t>(p.columns()));
  const auto difference = judge::compare(out, want, {1}, kPoison, true);
  if (difference.right) return {};
  return judge::wrong(bugs::kSortedFar, {judge::describe(difference, "out, last block,")});
}

class M7FarOffsets : public testing::TestWithParam<FarCase> {};

TEST_P(M7FarOffsets, NeedInt64) {
  const FarCase& c = GetParam();
  judge::StageCase<SortedProblem> stage_case;
  stage_case.name = std::string("far/") + c.name;
  stage_case.make = [&](uint64_t seed) { return make_far(c, seed); };
  stage_case.shape = std::string(c.is_gemm1 ? "GEMM1" : "GEMM2") +
                     " T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
                     " E=" + std::to_string(c.num_experts) + " H=" + std::to_string(c.hidden_size) +
                     " I=" + std::to_string(c.intermediate_size);
  stage_case.gpu_only = c.gpu_only;
  stage_case.call = call_far;
  stage_case.judge = judge_far;
  // A wrapped offset usually points outside the array.
  stage_case.explain = [](const SortedProblem&, const Outputs*, Verdict verdict) {
    if (verdict.state != judge::State::kCrash) return verdict;
    Verdict named = judge::wrong(bugs::kSortedFar, {verdict.sentence});
    named.state = verdict.state;
    named.fault = verdict.fault;
    return named;
  };
  judge::run_case(stage_case);
}

INSTANTIATE_TEST_SUITE_P(far, M7FarOffsets, testing::ValuesIn(kFarCases), [](const auto& far) {
  return std::string(far.param.name);
});

}  // namespace
}  // namespace moe
