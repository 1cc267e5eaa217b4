// What is timed for m10_fp8_hopper: its layer.
#include <map>
#include <memory>

#include "generated_data.h"
#include "in_threads.h"
#include "m10_tokens.h"

namespace moe::bench {
namespace {

using judge::Bytes;
using oracle::Fp8LayerReference;
using protocol::Fill;

constexpr uint64_t kBlock = 128;

// The references are computed once, after the first answer, and each output is judged once: sides
// and rounds repeat them.
auto judge_of(const Shape& s, std::vector<int32_t> topk_ids, const std::vector<int64_t>& tokens) {
  struct Known {
    std::vector<Fp8LayerReference> references;
    std::map<std::vector<Bytes>, judge::Verdict> verdicts;
  };
  const auto known = std::make_shared<Known>();
  return [=](const std::vector<Bytes>& samples) {
    if (known->references.empty()) {
      known->references.resize(tokens.size());
      in_threads(static_cast<int>(tokens.size()), [&](int begin, int end) {
        for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
          known->references[i] =
              oracle::fp8_layer_reference(problem_of_token(s, topk_ids, tokens[i]));
        }
      });
    }
    const auto [place, is_new] = known->verdicts.try_emplace(samples);
    if (is_new) place->second = judge_tokens(known->references, samples);
    return place->second;
  };
}

}  // namespace

std::vector<TimedCall> calls_of_m10(const Shape& s, const AskValue& ask) {
  const Routed& r = routed(s, 128);
  const auto tokens = static_cast<uint64_t>(s.num_tokens);
  const auto experts = static_cast<uint64_t>(s.num_experts);
  const auto hidden = static_cast<uint64_t>(s.hidden_size);
  const auto inter = static_cast<uint64_t>(s.intermediate_size);
  const auto codes = [&](uint64_t n, uint64_t depth, uint64_t seed) {
    return generated(Fill::kGeneratedE4m3, experts * n * depth, seed, 0);
  };
  const auto scales = [&](uint64_t n, uint64_t depth, uint64_t seed) {
    return generated(Fill::kGeneratedFloat, experts * (n / kBlock) * (depth / kBlock), seed,
                     w_scale(static_cast<int>(depth)));
  };
  TimedCall call;
  call.what = "layer";
  call.fp8 = true;
  call.flops = 6.0 * static_cast<double>(tokens) * s.top_k * s.hidden_size * s.intermediate_size;
  call.bytes = 3.0 * r.experts_hit * s.hidden_size * s.intermediate_size +
               4.0 * static_cast<double>(tokens) * s.hidden_size;
  const std::vector<int64_t> sizes = {s.num_tokens, s.num_experts, s.top_k, s.hidden_size,
                                      s.intermediate_size};
  std::vector<int64_t> asked = sizes;
  asked.push_back(0);  // bf16
  const int64_t bytes = ask(0, asked);
  call.integers = sizes;
  call.integers.insert(call.integers.end(), {1, bytes, 1, 0});  // renormalize, one call, bf16
  call.buffers = {uninitialised(2 * tokens * hidden),
                  generated(Fill::kGeneratedBf16, tokens * hidden, kSeedX, x_scale()),
                  image(logits_of(s)),
                  codes(2 * inter, hidden, kSeedW13),
                  scales(2 * inter, hidden, kSeedW13Scales),
                  codes(hidden, inter, kSeedW2),
                  scales(hidden, inter, kSeedW2Scales),
                  uninitialised(static_cast<uint64_t>(bytes))};
  std::vector<int64_t> rows = sampled_rows(s.num_tokens);
  rows.erase(rows.begin(), rows.end() - 2);  // a token costs K experts
  sample_rows(call, 0, rows, s.hidden_size);
  call.judge = judge_of(s, r.routing.topk_ids, rows);
  return {call};
}

}  // namespace moe::bench
