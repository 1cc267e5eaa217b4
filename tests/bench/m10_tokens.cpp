#include "m10_tokens.h"

#include "../judge/bf16.h"
#include "../m10_fp8_hopper_judge.h"
#include "../runner/generated.h"
#include "generated_data.h"
#include "in_threads.h"

namespace moe::bench {
namespace {

constexpr uint64_t kBlock = 128;

// A generated matrix of weights [E, n, depth].
struct Weights {
  uint64_t seed;
  uint64_t seed_scales;
  int n;
  int depth;

  // Appends one expert's part.
  void append(oracle::Coded& to, int32_t expert) const {
    const uint64_t count = static_cast<uint64_t>(n) * static_cast<uint64_t>(depth);
    const uint64_t first = static_cast<uint64_t>(expert) * count;
    const size_t begin = to.codes.size();
    to.codes.resize(begin + count);
    in_threads(n, [&](int first_row, int last_row) {
      const auto width = static_cast<uint64_t>(depth);
      for (uint64_t i = static_cast<uint64_t>(first_row) * width;
           i < static_cast<uint64_t>(last_row) * width; ++i) {
        to.codes[begin + i] = generated_e4m3(seed, first + i);
      }
    });
    const uint64_t scales = count / (kBlock * kBlock);
    const uint64_t first_scale = static_cast<uint64_t>(expert) * scales;
    for (uint64_t i = first_scale; i < first_scale + scales; ++i) {
      to.scales.push_back(generated_value(seed_scales, i, w_scale(depth)));
    }
  }
};

// Each token's reference, with those open codes that bring it closest to the output.
judge::Matrix nearest_of(const std::vector<oracle::Fp8LayerReference>& references,
                         const std::vector<judge::Bytes>& samples) {
  std::vector<judge::Matrix> rows(references.size());
  in_threads(static_cast<int>(rows.size()), [&](int begin, int end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      rows[i] = m10_cases::nearest(references[i], judge::values_of<judge::Bf16>(samples[i]));
    }
  });
  judge::Matrix all = {static_cast<int64_t>(rows.size()), rows[0].columns, {}};
  for (const judge::Matrix& row : rows) {
    all.values.insert(all.values.end(), row.values.begin(), row.values.end());
  }
  return all;
}

}  // namespace

oracle::Fp8LayerProblem problem_of_token(const Shape& shape,
                                         const std::vector<int32_t>& topk_ids,
                                         int64_t token) {
  oracle::Fp8LayerProblem p;
  p.num_tokens = 1;
  p.num_experts = p.top_k = shape.top_k;
  p.hidden_size = shape.hidden_size;
  p.intermediate_size = shape.intermediate_size;
  p.renormalize = true;  // so the other experts' logits don't count
  const auto hidden = static_cast<uint64_t>(shape.hidden_size);
  for (uint64_t d = 0; d < hidden; ++d) {
    const uint64_t at = static_cast<uint64_t>(token) * hidden + d;
    p.x.push_back(judge::to_bf16(static_cast<double>(generated_value(kSeedX, at, x_scale()))));
  }
  const std::vector<float> logits = logits_of(shape);
  const Weights w13 = {kSeedW13, kSeedW13Scales, 2 * shape.intermediate_size, shape.hidden_size};
  const Weights w2 = {kSeedW2, kSeedW2Scales, shape.hidden_size, shape.intermediate_size};
  for (int slot = 0; slot < shape.top_k; ++slot) {
    const int32_t expert = topk_ids[static_cast<size_t>(token * shape.top_k + slot)];
    p.logits.push_back(logits[static_cast<size_t>(token * shape.num_experts + expert)]);
    w13.append(p.w13, expert);
    w2.append(p.w2, expert);
  }
  return p;
}

judge::Difference difference_of_tokens(const std::vector<oracle::Fp8LayerReference>& references,
                                       const std::vector<judge::Bytes>& samples) {
  std::vector<judge::Bf16> got;
  for (const judge::Bytes& sample : samples) {
    const auto values = judge::values_of<judge::Bf16>(sample);
    got.insert(got.end(), values.begin(), values.end());
  }
  m10_cases::Fp8LayerCase as_in_tests = {};
  as_in_tests.data = m10_cases::Data::kNormal;
  as_in_tests.out_fp32 = false;
  const std::vector<uint8_t> judged(samples.size(), 1);
  return judge::compare(got, nearest_of(references, samples), judged, 0xffff, false,
                        m10_cases::gates_of(as_in_tests));
}

judge::Verdict judge_tokens(const std::vector<oracle::Fp8LayerReference>& references,
                            const std::vector<judge::Bytes>& samples) {
  const judge::Difference difference = difference_of_tokens(references, samples);
  if (difference.right) return {};
  return judge::wrong("the timed output is wrong", {judge::describe(difference, "sampled rows")});
}

}  // namespace moe::bench
