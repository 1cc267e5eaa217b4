// What is timed for m10_fp8_hopper: its layer.
#include <algorithm>
#include <array>
#include <cmath>

#include "../judge/fp8.h"
#include "../runner/generated.h"
#include "generated_data.h"

namespace moe::bench {
namespace {

using protocol::Fill;

constexpr uint64_t kSeedScales = 21;
constexpr uint64_t kBlock = 128;

// A row of codes times the scales of its blocks.
using Row = std::vector<double>;

// x or h as the layer sees it: quantised by m5's rules.
Row quantized(const Row& values) {
  Row result;
  for (size_t first = 0; first < values.size(); first += kBlock) {
    double amax = 0.0;
    for (size_t i = first; i < first + kBlock; ++i) amax = std::max(amax, std::fabs(values[i]));
    const auto scale = static_cast<double>(std::fmax(static_cast<float>(amax), 1e-10f) / 448.0f);
    for (size_t i = first; i < first + kBlock; ++i) {
      result.push_back(judge::from_e4m3(judge::to_e4m3(values[i] / scale)) * scale);
    }
  }
  return result;
}

std::array<double, 256> decoded_codes() {
  std::array<double, 256> values{};
  for (size_t i = 0; i < 256; ++i) values[i] = judge::from_e4m3(static_cast<judge::Fp8>(i));
  return values;
}

// A matrix of weights [E, n, depth], generated.
struct Weights {
  uint64_t seed;
  uint64_t seed_scales;
  uint64_t n;
  uint64_t depth;
  float scale;

  TimedBuffer codes(uint64_t experts) const {
    return generated(Fill::kGeneratedE4m3, experts * n * depth, seed, 0);
  }
  TimedBuffer scales(uint64_t experts) const {
    return generated(Fill::kGeneratedFloat, experts * (n / kBlock) * (depth / kBlock), seed_scales,
                     scale);
  }
  Row times(const Row& a, int expert) const {
    static const std::array<double, 256> values = decoded_codes();
    Row out;
    const uint64_t first_row = static_cast<uint64_t>(expert) * n;
    for (uint64_t row = first_row; row < first_row + n; ++row) {
      double total = 0.0;
      for (uint64_t block = 0; block < depth / kBlock; ++block) {
        double sum = 0.0;
        for (uint64_t d = block * kBlock; d < (block + 1) * kBlock; ++d) {
          sum += a[d] * values[generated_e4m3(seed, row * depth + d)];
        }
        const uint64_t at = row / kBlock * (depth / kBlock) + block;
        total += sum * static_cast<double>(generated_value(seed_scales, at, scale));
      }
      out.push_back(total);
    }
    return out;
  }
};

}  // namespace

std::vector<TimedCall> calls_of_m10(const Shape& s, const AskValue& ask) {
  const Routed& r = routed(s, 128);
  const auto tokens = static_cast<uint64_t>(s.num_tokens);
  const auto experts = static_cast<uint64_t>(s.num_experts);
  const auto hidden = static_cast<uint64_t>(s.hidden_size);
  const auto inter = static_cast<uint64_t>(s.intermediate_size);
  const Weights w13 = {kSeedW13, kSeedScales, 2 * inter, hidden, w_scale(s.hidden_size)};
  const Weights w2 = {kSeedW2, kSeedScales + 1, hidden, inter, w_scale(s.intermediate_size)};
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
                  w13.codes(experts),
                  w13.scales(experts),
                  w2.codes(experts),
                  w2.scales(experts),
                  uninitialised(static_cast<uint64_t>(bytes))};
  std::vector<int64_t> rows = sampled_rows(s.num_tokens);
  rows.erase(rows.begin(), rows.end() - 2);  // a token costs K experts
  sample_rows(call, 0, rows, s.hidden_size);
  judge::Gates gates;  // a value of h on a boundary between codes may have either
  gates.total = 2e-2;
  gates.row = 3e-2;
  gates.element = 8e-2;
  call.judge = judge_rows(rows, s.hidden_size, gates, [=, routing = r.routing](int64_t token) {
    Row out(hidden, 0.0);
    const Row x =
        quantized(generated_row(kSeedX, static_cast<uint64_t>(token), s.hidden_size, x_scale()));
    for (int slot = 0; slot < s.top_k; ++slot) {
      const auto flat_id = static_cast<size_t>(token * s.top_k + slot);
      const int expert = routing.topk_ids[flat_id];
      const Row gate_up = w13.times(x, expert);
      Row h;
      for (size_t i = 0; i < inter; ++i) {
        h.push_back(gate_up[i] / (1.0 + std::exp(-gate_up[i])) * gate_up[inter + i]);
      }
      const Row y = w2.times(quantized(h), expert);
      for (size_t i = 0; i < y.size(); ++i) out[i] += routing.topk_weights[flat_id] * y[i];
    }
    return out;
  });
  return {call};
}

}  // namespace moe::bench
