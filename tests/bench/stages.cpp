// What is timed for each stage, and how a few rows of its outputs are judged: from the generated
// inputs, value by value, in double.
#include <drills/m1_align.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "../judge/compare.h"
#include "../m1_align_oracle.h"
#include "../runner/generated.h"
#include "generated_data.h"
#include "timed_call.h"

namespace moe::bench {
namespace {

using judge::Bf16;
using judge::Bytes;
using judge::Verdict;
using protocol::Fill;

// ---- m1

std::vector<TimedCall> calls_of_m1(const Shape& s, const AskValue& ask) {
  const int block_m = 64;
  const Routed& r = routed(s, block_m);
  const auto ids = static_cast<uint64_t>(s.num_tokens) * static_cast<uint64_t>(s.top_k);
  TimedCall route;
  route.what = "route";
  route.bytes = 4.0 * s.num_tokens * s.num_experts + 8.0 * static_cast<double>(ids);
  route.integers = {s.num_tokens, s.num_experts, s.top_k, 1};
  route.buffers = {uninitialised(4 * ids), uninitialised(4 * ids), image(logits_of(s))};
  route.samples = {{0, 0, 4 * ids}};
  route.judge = [want = r.routing.topk_ids](const std::vector<Bytes>& samples) {
    return judge::values_of<int32_t>(samples[0]) == want
               ? Verdict{}
               : judge::wrong("the timed output is wrong");
  };
  TimedCall align;
  align.what = "align";
  align.operation = 1;
  const int64_t bytes = ask(1, {s.num_tokens, s.top_k, s.num_experts, block_m});
  align.integers = {s.num_tokens, s.top_k, s.num_experts, block_m, bytes};
  align.buffers = {uninitialised(4 * r.table.sorted_token_ids.size()),
                   uninitialised(4 * r.table.expert_ids.size()), uninitialised(4),
                   image(r.routing.topk_ids), uninitialised(static_cast<uint64_t>(bytes))};
  align.bytes =
      8.0 * static_cast<double>(ids) + 4.0 * static_cast<double>(r.table.sorted_token_ids.size());
  align.samples = {{1, 0, 4 * r.table.expert_ids.size()}, {2, 0, 4}};
  align.judge = [want = r.table](const std::vector<Bytes>& samples) {
    const bool right = judge::values_of<int32_t>(samples[0]) == want.expert_ids &&
                       judge::values_of<int32_t>(samples[1])[0] == want.num_tokens_post_padded;
    return right ? Verdict{} : judge::wrong("the timed output is wrong");
  };
  // What a layer waits for: both, one behind the other, in one graph.
  TimedCall both;
  both.what = "both";
  both.operation = 2;
  both.bytes = route.bytes + align.bytes;
  both.integers = {s.num_tokens, s.num_experts, s.top_k, 1, block_m, bytes};
  both.buffers = {uninitialised(4 * ids),
                  uninitialised(4 * ids),
                  image(logits_of(s)),
                  uninitialised(4 * r.table.sorted_token_ids.size()),
                  uninitialised(4 * r.table.expert_ids.size()),
                  uninitialised(4),
                  uninitialised(static_cast<uint64_t>(bytes))};
  both.samples = {{4, 0, 4 * r.table.expert_ids.size()}, {5, 0, 4}};
  both.judge = align.judge;
  return {route, align, both};
}

// ---- m2, m6

TimedCall grouped_gemm(const Shape& s, bool slots, int block_m) {
  const Routed& r = routed(s, block_m);
  const int n = slots ? s.hidden_size : 2 * s.intermediate_size;
  const int depth = slots ? s.intermediate_size : s.hidden_size;
  const auto ids = static_cast<uint64_t>(s.num_tokens) * static_cast<uint64_t>(s.top_k);
  const uint64_t rows_of_a = slots ? ids : static_cast<uint64_t>(s.num_tokens);
  const uint64_t seed_a = slots ? kSeedH : kSeedX;
  const uint64_t seed_w = slots ? kSeedW2 : kSeedW13;
  const auto elements = [](uint64_t a, int b, int c = 1) {
    return a * static_cast<uint64_t>(b) * static_cast<uint64_t>(c);
  };
  TimedCall call;
  call.what = slots ? "GEMM2" : "GEMM1";
  call.flops = 2.0 * static_cast<double>(ids) * n * depth;
  call.rows = static_cast<int64_t>(ids);
  call.padded_rows = r.table.num_tokens_post_padded;
  call.bytes =
      2.0 * (static_cast<double>(elements(rows_of_a, depth)) +
             static_cast<double>(r.experts_hit) * n * depth + static_cast<double>(ids) * n);
  call.integers = {s.num_tokens, s.top_k, s.num_experts, n, depth, block_m, slots ? 1 : 0};
  call.buffers = {
      uninitialised(2 * elements(ids, n)),
      generated(Fill::kGeneratedBf16, elements(rows_of_a, depth), seed_a, x_scale()),
      generated(Fill::kGeneratedBf16, elements(static_cast<uint64_t>(s.num_experts), n, depth),
                seed_w, w_scale(depth)),
      image(r.table.sorted_token_ids),
      image(r.table.expert_ids),
      image(std::vector<int32_t>{r.table.num_tokens_post_padded})};
  const std::vector<int64_t> rows = sampled_rows(static_cast<int64_t>(ids));
  sample_rows(call, 0, rows, n);
  call.judge = judge_rows(rows, n, {}, [=, ids_of = r.routing.topk_ids](int64_t flat_id) {
    const auto row = static_cast<uint64_t>(slots ? flat_id : flat_id / s.top_k);
    return times_expert(generated_row(seed_a, row, depth, x_scale()), seed_w,
                        ids_of[static_cast<size_t>(flat_id)], n);
  });
  return call;
}

// ---- m4: the same products in m4's order, with the tile that pick_tile says

TimedCall ordered_gemm(const Shape& s, bool slots, const AskValue& ask) {
  constexpr uint32_t kPickTile = 3;
  const auto field = [&](int number) {
    return ask(kPickTile,
               {s.num_tokens, s.num_experts, s.top_k, s.hidden_size, s.intermediate_size, number});
  };
  TimedCall call = grouped_gemm(s, slots, static_cast<int>(field(0)));
  const int first = slots ? 4 : 1;
  const auto rows = call.integers.back();
  call.integers.back() = field(first);  // block_n stands where rows stood
  call.integers.insert(call.integers.end(), {field(first + 1), field(first + 2), rows, 0});
  call.buffers.insert(call.buffers.begin() + 1, TimedBuffer{});  // no trace
  call.buffers.insert(call.buffers.begin() + 4, TimedBuffer{});  // no weights
  return call;
}

// ---- m5

constexpr uint64_t kSeedScales = 21;
constexpr int kScaleBlock = 128;

double e4m3_of(uint8_t code) {  // normal codes only, which is what is generated
  const double magnitude = std::ldexp(1.0 + (code & 7) / 8.0, (code >> 3 & 15) - 7);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

TimedCall grouped_gemm_fp8(const Shape& s, bool slots, int block_m) {
  TimedCall call = grouped_gemm(s, slots, block_m);
  call.what += block_m == 64 ? "/64" : "/128";
  const auto depth = static_cast<int>(call.integers[4]);
  const auto n = static_cast<int>(call.integers[3]);
  const uint64_t rows_of_a = call.buffers[1].bytes / 2 / static_cast<uint64_t>(depth);
  const auto blocks_d = static_cast<uint64_t>((depth + kScaleBlock - 1) / kScaleBlock);
  const auto blocks_n = static_cast<uint64_t>((n + kScaleBlock - 1) / kScaleBlock);
  const auto experts = static_cast<uint64_t>(s.num_experts);
  const uint64_t seed_a = slots ? kSeedH : kSeedX;
  const uint64_t seed_w = slots ? kSeedW2 : kSeedW13;
  const float scale_a = 1.0f;
  const float scale_w = w_scale(depth);
  call.fp8 = true;
  call.bytes /= 2.0;
  call.operation = 2;
  call.integers.push_back(0);  // bf16 out
  const std::vector<TimedBuffer> tables(call.buffers.end() - 3, call.buffers.end());
  call.buffers = {
      call.buffers[0],
      generated(Fill::kGeneratedE4m3, rows_of_a * static_cast<uint64_t>(depth), seed_a, 0),
      generated(Fill::kGeneratedFloat, rows_of_a * blocks_d, kSeedScales, scale_a),
      generated(Fill::kGeneratedE4m3,
                experts * static_cast<uint64_t>(n) * static_cast<uint64_t>(depth), seed_w, 0),
      generated(Fill::kGeneratedFloat, experts * blocks_n * blocks_d, kSeedScales + 1, scale_w),
      TimedBuffer{},
      tables[0],
      tables[1],
      tables[2]};
  const auto rows = sampled_rows(static_cast<int64_t>(s.num_tokens) * s.top_k);
  const auto ids = routed(s, block_m).routing.topk_ids;
  call.judge = judge_rows(rows, n, {}, [=](int64_t flat_id) {
    const auto row = static_cast<uint64_t>(slots ? flat_id : flat_id / s.top_k);
    const auto expert = static_cast<uint64_t>(ids[static_cast<size_t>(flat_id)]);
    std::vector<double> out;
    for (uint64_t column = 0; column < static_cast<uint64_t>(n); ++column) {
      const uint64_t w_row = expert * static_cast<uint64_t>(n) + column;
      double sum = 0.0;
      for (uint64_t d = 0; d < static_cast<uint64_t>(depth); ++d) {
        const uint64_t block = d / kScaleBlock;
        const double a = e4m3_of(generated_e4m3(seed_a, row * static_cast<uint64_t>(depth) + d));
        const double w = e4m3_of(generated_e4m3(seed_w, w_row * static_cast<uint64_t>(depth) + d));
        const uint64_t w_scale_at = (expert * blocks_n + column / kScaleBlock) * blocks_d + block;
        sum += a * w *
               static_cast<double>(generated_value(kSeedScales, row * blocks_d + block, scale_a)) *
               static_cast<double>(generated_value(kSeedScales + 1, w_scale_at, scale_w));
      }
      out.push_back(sum);
    }
    return out;
  });
  return call;
}

// Both quantisers of activations: of x before GEMM1 and of h before GEMM2.
TimedCall quantize_rows(const Shape& s, bool slots) {
  const uint64_t rows =
      static_cast<uint64_t>(s.num_tokens) * (slots ? static_cast<uint64_t>(s.top_k) : 1);
  const int depth = slots ? s.intermediate_size : s.hidden_size;
  const uint64_t values = rows * static_cast<uint64_t>(depth);
  const uint64_t scales = rows * static_cast<uint64_t>((depth + kScaleBlock - 1) / kScaleBlock);
  TimedCall call;
  call.what = slots ? "quant h" : "quant x";
  call.bytes = 3.0 * static_cast<double>(values) + 4.0 * static_cast<double>(scales);
  call.integers = {static_cast<int64_t>(rows), depth, 0};
  call.buffers = {uninitialised(values), uninitialised(4 * scales),
                  generated(Fill::kGeneratedBf16, values, kSeedX, x_scale())};
  call.samples = {{1, 4 * (scales - 1), 4}};
  call.judge = [=](const std::vector<Bytes>& samples) {  // the scale of the last block
    const uint64_t width = static_cast<uint64_t>(depth - 1) % kScaleBlock + 1;
    float amax = 0.0f;
    for (uint64_t i = values - width; i < values; ++i) {
      amax = std::fmax(amax, static_cast<float>(std::fabs(bf16_of(kSeedX, i, x_scale()))));
    }
    return judge::values_of<float>(samples[0])[0] == amax / 448.0f
               ? Verdict{}
               : judge::wrong("the timed output is wrong");
  };
  return call;
}

// ---- the whole layer: m3, m4, m8, m9, and what the library chooses

TimedCall moe_layer(const Shape& s, uint32_t operation, const AskValue& ask) {
  const Routed& r = routed(s, 64);
  const auto tokens = static_cast<uint64_t>(s.num_tokens);
  const auto experts = static_cast<uint64_t>(s.num_experts);
  const auto hidden = static_cast<uint64_t>(s.hidden_size);
  const auto inter = static_cast<uint64_t>(s.intermediate_size);
  TimedCall call;
  call.what = "layer";
  call.operation = operation;
  call.flops = 6.0 * static_cast<double>(tokens) * s.top_k * s.hidden_size * s.intermediate_size;
  call.bytes = 6.0 * r.experts_hit * s.hidden_size * s.intermediate_size +
               4.0 * static_cast<double>(tokens) * s.hidden_size;
  const std::vector<int64_t> sizes = {s.num_tokens, s.num_experts, s.top_k, s.hidden_size,
                                      s.intermediate_size};
  const int64_t bytes = ask(operation, sizes);
  call.integers = sizes;
  call.integers.insert(call.integers.end(), {1, bytes, 1});  // renormalize, workspace, one call
  call.buffers = {uninitialised(2 * tokens * hidden),
                  generated(Fill::kGeneratedBf16, tokens * hidden, kSeedX, x_scale()),
                  image(logits_of(s)),
                  generated(Fill::kGeneratedBf16, experts * 2 * inter * hidden, kSeedW13,
                            w_scale(s.hidden_size)),
                  generated(Fill::kGeneratedBf16, experts * hidden * inter, kSeedW2,
                            w_scale(s.intermediate_size)),
                  uninitialised(static_cast<uint64_t>(bytes))};
  std::vector<int64_t> rows = sampled_rows(s.num_tokens);
  rows.erase(rows.begin(), rows.end() - 3);  // a token costs 8 experts
  sample_rows(call, 0, rows, s.hidden_size);
  judge::Gates gates;
  gates.total = 1e-2;
  gates.row = 1.5e-2;
  gates.element = 3e-2;
  call.judge = judge_rows(rows, s.hidden_size, gates, [=, routing = r.routing](int64_t token) {
    std::vector<double> out(static_cast<size_t>(s.hidden_size), 0.0);
    const auto x = generated_row(kSeedX, static_cast<uint64_t>(token), s.hidden_size, x_scale());
    for (int slot = 0; slot < s.top_k; ++slot) {
      const auto flat_id = static_cast<size_t>(token * s.top_k + slot);
      const int expert = routing.topk_ids[flat_id];
      const auto gate_up = times_expert(x, kSeedW13, expert, 2 * s.intermediate_size);
      std::vector<double> h;
      for (size_t i = 0; i < inter; ++i) {
        const double gate = gate_up[i];
        h.push_back(static_cast<double>(
            judge::to_float(judge::to_bf16(gate / (1.0 + std::exp(-gate)) * gate_up[inter + i]))));
      }
      const auto y = times_expert(h, kSeedW2, expert, s.hidden_size);
      for (size_t i = 0; i < y.size(); ++i) out[i] += routing.topk_weights[flat_id] * y[i];
    }
    return out;
  });
  return call;
}

}  // namespace

std::vector<TimedCall> timed_calls(const std::string& stem,
                                   const Shape& shape,
                                   const AskValue& ask) {
  if (stem == "m1_align") return calls_of_m1(shape, ask);
  if (stem == "m2_grouped_gemm") {
    const int64_t rows = int64_t{shape.num_tokens} * shape.top_k / shape.num_experts;
    const int block_m = rows >= 256 ? 128 : 64;
    return {grouped_gemm(shape, false, block_m), grouped_gemm(shape, true, block_m)};
  }
  if (stem == "m6_wgmma") {
    std::vector<TimedCall> calls;
    for (const int block_m : {64, 128}) {
      for (const bool slots : {false, true}) {
        calls.push_back(grouped_gemm(shape, slots, block_m));
        calls.back().what += block_m == 64 ? "/64" : "/128";
      }
    }
    return calls;
  }
  if (stem == "m5_block_fp8") {
    return {quantize_rows(shape, false),         quantize_rows(shape, true),
            grouped_gemm_fp8(shape, false, 64),  grouped_gemm_fp8(shape, true, 64),
            grouped_gemm_fp8(shape, false, 128), grouped_gemm_fp8(shape, true, 128)};
  }
  if (stem == "m7_warp_specialized") return calls_of_m7(shape);
  if (stem == "m10_fp8_hopper") return calls_of_m10(shape, ask);
  std::vector<TimedCall> calls = {moe_layer(shape, kLayerOperation, ask)};
  if (stem == "m4_group_m") {
    calls.push_back(ordered_gemm(shape, false, ask));
    calls.push_back(ordered_gemm(shape, true, ask));
  }
  return calls;
}

}  // namespace moe::bench
