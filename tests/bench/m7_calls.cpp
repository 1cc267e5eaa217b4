// What is timed for m7_warp_specialized: its two GEMMs.
#include <algorithm>
#include <cmath>

#include "generated_data.h"

namespace moe::bench {

using protocol::Fill;

namespace {

// Row p of the outputs, and of h, belongs to entry p of the table.
TimedCall sorted_gemm(const Shape& s, bool is_gemm1) {
  const Routed& r = routed(s, 128);
  const auto ids = static_cast<uint64_t>(s.num_tokens) * static_cast<uint64_t>(s.top_k);
  const auto capacity = static_cast<uint64_t>(r.table.sorted_token_ids.size());
  const int depth = is_gemm1 ? s.hidden_size : s.intermediate_size;
  const int columns = is_gemm1 ? s.intermediate_size : s.hidden_size;
  const int n = is_gemm1 ? 2 * columns : columns;
  const uint64_t seed_a = is_gemm1 ? kSeedX : kSeedH;
  const uint64_t seed_w = is_gemm1 ? kSeedW13 : kSeedW2;
  const uint64_t values_of_a =
      (is_gemm1 ? static_cast<uint64_t>(s.num_tokens) : capacity) * static_cast<uint64_t>(depth);
  const uint64_t values_of_w = static_cast<uint64_t>(s.num_experts) * static_cast<uint64_t>(n) *
                               static_cast<uint64_t>(depth);
  TimedCall call;
  call.what = is_gemm1 ? "GEMM1" : "GEMM2";
  call.operation = is_gemm1 ? 0 : 1;
  call.flops = 2.0 * static_cast<double>(ids) * n * depth;
  call.bytes =
      2.0 * (static_cast<double>(is_gemm1 ? s.num_tokens : r.table.num_tokens_post_padded) * depth +
             static_cast<double>(r.experts_hit) * n * depth +
             static_cast<double>(r.table.num_tokens_post_padded) * columns);
  call.integers = {s.num_tokens, s.top_k, s.num_experts, s.hidden_size, s.intermediate_size};
  std::vector<float> weights;
  for (const double weight : r.routing.topk_weights) weights.push_back(static_cast<float>(weight));
  call.buffers = {uninitialised(2 * capacity * static_cast<uint64_t>(columns)),
                  generated(Fill::kGeneratedBf16, values_of_a, seed_a, x_scale()),
                  generated(Fill::kGeneratedBf16, values_of_w, seed_w, w_scale(depth)),
                  is_gemm1 ? TimedBuffer{} : image(weights),
                  image(r.table.sorted_token_ids),
                  image(r.table.expert_ids),
                  image(std::vector<int32_t>{r.table.num_tokens_post_padded})};
  std::vector<int64_t> rows;
  for (const int64_t flat_id : sampled_rows(static_cast<int64_t>(ids))) {
    const auto& table = r.table.sorted_token_ids;
    rows.push_back(std::find(table.begin(), table.end(), flat_id) - table.begin());
  }
  sample_rows(call, 0, rows, columns);
  call.judge = judge_rows(rows, columns, {}, [=](int64_t row) {
    const auto flat_id = static_cast<size_t>(r.table.sorted_token_ids[static_cast<size_t>(row)]);
    const auto row_of_a =
        is_gemm1 ? flat_id / static_cast<size_t>(s.top_k) : static_cast<size_t>(row);
    auto sums = times_expert(generated_row(seed_a, row_of_a, depth, x_scale()), seed_w,
                             r.routing.topk_ids[flat_id], n);
    for (size_t i = 0; i < static_cast<size_t>(columns); ++i) {
      sums[i] *= is_gemm1 ? sums[static_cast<size_t>(columns) + i] / (1.0 + std::exp(-sums[i]))
                          : static_cast<double>(weights[flat_id]);
    }
    sums.resize(static_cast<size_t>(columns));
    return sums;
  });
  return call;
}

}  // namespace

std::vector<TimedCall> calls_of_m7(const Shape& shape) {
  return {sorted_gemm(shape, true), sorted_gemm(shape, false)};
}

}  // namespace moe::bench
