#include "generated_data.h"

#include <cmath>
#include <map>
#include <memory>

#include "../judge/random.h"
#include "../runner/generated.h"
#include "in_threads.h"

namespace moe::bench {

using judge::Bf16;
using judge::Bytes;
using judge::Verdict;

namespace {

constexpr int kSampledRows = 6;

}  // namespace

float x_scale() {
  return 1.0f;
}
float w_scale(int depth) {
  return 1.0f / std::sqrt(static_cast<float>(depth));
}

double bf16_of(uint64_t seed, uint64_t index, float scale) {
  return static_cast<double>(
      judge::to_float(judge::to_bf16(static_cast<double>(generated_value(seed, index, scale)))));
}

std::vector<double> generated_row(uint64_t seed, uint64_t row, int width, float scale) {
  std::vector<double> values;
  for (int d = 0; d < width; ++d) {
    values.push_back(
        bf16_of(seed, row * static_cast<uint64_t>(width) + static_cast<uint64_t>(d), scale));
  }
  return values;
}

std::vector<double> times_expert(const std::vector<double>& a, uint64_t seed, int expert, int n) {
  const auto depth = static_cast<int>(a.size());
  std::vector<double> out(static_cast<size_t>(n));
  const auto columns = [&](int begin, int end) {
    for (int column = begin; column < end; ++column) {
      const uint64_t row =
          static_cast<uint64_t>(expert) * static_cast<uint64_t>(n) + static_cast<uint64_t>(column);
      const std::vector<double> w = generated_row(seed, row, depth, w_scale(depth));
      double sum = 0.0;
      for (int d = 0; d < depth; ++d) sum += a[static_cast<size_t>(d)] * w[static_cast<size_t>(d)];
      out[static_cast<size_t>(column)] = sum;
    }
  };
  in_threads(n, columns);  // weights are made anew for each row: most of the run otherwise
  return out;
}

// Aligning by the oracle is quadratic in E; this is the same table.
const Routed& routed(const Shape& s, int block_m) {
  static std::map<int, Routed> known;  // one program times one shape
  const auto [place, is_new] = known.try_emplace(block_m);
  Routed& r = place->second;
  if (!is_new) return r;
  r.routing = oracle::route(logits_of(s), s.num_tokens, s.num_experts, s.top_k, true);
  r.table = oracle::align(r.routing.topk_ids, s.num_tokens, s.top_k, s.num_experts, block_m);
  std::vector<bool> hit(static_cast<size_t>(s.num_experts), false);
  for (const int32_t e : r.routing.topk_ids) hit[static_cast<size_t>(e)] = true;
  for (const bool h : hit) r.experts_hit += h ? 1 : 0;
  return r;
}

std::function<Verdict(const std::vector<Bytes>&)> judge_rows(
    const std::vector<int64_t>& rows,
    int columns,
    judge::Gates gates,
    const std::function<std::vector<double>(int64_t)>& want) {
  // Computed once, after the first answer, for all sides and rounds.
  const auto reference = std::make_shared<judge::Matrix>();
  return [=](const std::vector<Bytes>& samples) {
    if (reference->values.empty()) {
      *reference = {static_cast<int64_t>(rows.size()), columns, {}};
      for (const int64_t sampled : rows) {
        const std::vector<double> row = want(sampled);
        reference->values.insert(reference->values.end(), row.begin(), row.end());
      }
    }
    std::vector<Bf16> got;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto values = judge::values_of<Bf16>(samples[i]);
      got.insert(got.end(), values.begin(), values.end());
    }
    const auto difference =
        judge::compare(got, *reference, std::vector<uint8_t>(rows.size(), 1), 0xffff, false, gates);
    if (difference.right) return Verdict{};
    return judge::wrong("the timed output is wrong", {judge::describe(difference, "sampled rows")});
  };
}

std::vector<int64_t> sampled_rows(int64_t count) {
  std::vector<int64_t> rows;
  judge::Random random(99);
  for (int i = 0; i < kSampledRows; ++i) {
    rows.push_back(static_cast<int64_t>(random.bits() % static_cast<uint64_t>(count)));
  }
  rows.back() = count - 1;
  return rows;
}

void sample_rows(TimedCall& call, size_t buffer, const std::vector<int64_t>& rows, int columns) {
  for (const int64_t row : rows) {
    const auto bytes = static_cast<uint64_t>(columns) * sizeof(Bf16);
    call.samples.push_back({buffer, static_cast<uint64_t>(row) * bytes, bytes});
  }
}

}  // namespace moe::bench
