// m9 is judged with the layer's gates (calibration_test.cpp says what is checked).
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "../layer_cases.h"
#include "../m1_align_oracle.h"
#include "../m9_decode_cases.h"
#include "../m9_decode_oracle.h"
#include "calibrated_layer.h"
#include "calibrated_sums.h"
#include "calibration.h"
#include "gpu_sums.h"

namespace moe::judge {
namespace {

using oracle::LayerProblem;
using Row = std::vector<double>;

constexpr size_t kLanes = 32;
constexpr size_t kChunk = 8;               // columns of a lane, side by side
constexpr size_t kStep = kLanes * kChunk;  // of a warp, for up to four tokens
constexpr size_t kWarps = 8;               // which share GEMM2's steps
constexpr size_t kColumns = 32;            // of a step, for more tokens
constexpr size_t kMostTokens = 64;

Row products_of(const Row& input, const std::vector<Bf16>& matrix, size_t row) {
  Row products(input.size());
  for (size_t d = 0; d < input.size(); ++d) {
    products[d] = input[d] * static_cast<double>(to_float(matrix[row * input.size() + d]));
  }
  return products;
}

// T <= 4: each lane adds up its chunk of a step, and adds it, weighted, to its sum.
void add_step(Row& lanes, const Row& products, size_t step, double weight) {
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t first = step * kStep + lane * kChunk;
    if (first >= products.size()) return;
    float chunk = 0.0f;
    for (size_t d = first; d < first + kChunk; ++d) chunk += static_cast<float>(products[d]);
    lanes[lane] = as_float(lanes[lane] + weight * static_cast<double>(chunk));
  }
}

size_t steps_of(size_t depth) {
  return (depth + kStep - 1) / kStep;
}

double warp_sum(const Row& products) {
  Row lanes(kLanes);
  for (size_t step = 0; step < steps_of(products.size()); ++step) {
    add_step(lanes, products, step, 1.0);
  }
  return sum_in_order(lanes, Order::kTree);
}

// T > 4: of 32 columns a lane has eight, four for the first mma and four for the second.
double piece_sum(const Row& products, size_t begin, size_t end, Order order) {
  Row mixed;
  for (size_t first = begin; first < end; first += kColumns) {
    for (size_t i = 0; i < kColumns; ++i) {
      const size_t d = first + i % 16 / 4 * kChunk + i / 16 * 4 + i % 4;
      mixed.push_back(d < end ? products[d] : 0.0);
    }
  }
  return sum_in_order(mixed, order);
}

// m9's solution, its tensor cores adding in `mma`.
class Decode {
 public:
  Decode(const LayerProblem& p, Order mma)
      : p_(p),
        mma_(mma),
        splits_(static_cast<size_t>(oracle::decode_splits(p))),
        runs_(oracle::decode_runs(p)),
        routing_(oracle::route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize)) {
    for (size_t id = 0; id < static_cast<size_t>(p.num_ids()); ++id) h_.push_back(h_row(id));
  }

  std::vector<Bf16> out() const {
    std::vector<Bf16> values;
    for (size_t token = 0; token < static_cast<size_t>(p_.num_tokens); ++token) {
      for (size_t column = 0; column < hidden(); ++column) {
        values.push_back(
            to_bf16(splits_ == 0 ? of_warps(token, column) : of_splits(token, column)));
      }
    }
    return values;
  }

 private:
  size_t hidden() const { return static_cast<size_t>(p_.hidden_size); }
  size_t inner() const { return static_cast<size_t>(p_.intermediate_size); }
  size_t top_k() const { return static_cast<size_t>(p_.top_k); }
  size_t expert(size_t id) const { return static_cast<size_t>(routing_.topk_ids[id]); }
  double weight(size_t id) const { return as_float(routing_.topk_weights[id]); }

  Row h_row(size_t id) const {
    Row x;
    for (size_t d = 0; d < hidden(); ++d) {
      x.push_back(static_cast<double>(to_float(p_.x[id / top_k() * hidden() + d])));
    }
    const auto sum = [&](size_t row) {
      const Row products = products_of(x, p_.w13, row);
      return splits_ == 0 ? warp_sum(products) : piece_sum(products, 0, hidden(), mma_);
    };
    Row h;
    for (size_t i = 0; i < inner(); ++i) {
      const double gate = sum(expert(id) * 2 * inner() + i);
      h.push_back(as_bf16(silu_fast(gate, sum((expert(id) * 2 + 1) * inner() + i))));
    }
    return h;
  }

  // The steps of all runs, one run behind the other, go round among the warps.
  double of_warps(size_t token, size_t column) const {
    std::vector<Row> warps(kWarps, Row(kLanes));
    const size_t steps = steps_of(inner());
    for (size_t run = 0; run < runs_.size(); ++run) {
      for (const int flat_id : runs_[run].flat_ids) {
        const auto id = static_cast<size_t>(flat_id);
        if (id / top_k() != token) continue;
        const Row products = products_of(h_[id], p_.w2, expert(id) * hidden() + column);
        for (size_t step = 0; step < steps; ++step) {
          add_step(warps[(run * steps + step) % kWarps], products, step, weight(id));
        }
      }
    }
    Row parts;
    for (const Row& lanes : warps) parts.push_back(sum_in_order(lanes, Order::kTree));
    return sum_in_order(parts, Order::kForward);
  }

  // Slots in their order, in each its parts of I in theirs; y is fp32.
  double of_splits(size_t token, size_t column) const {
    const size_t steps = (inner() + kColumns - 1) / kColumns;
    double sum = 0.0;
    for (size_t id = token * top_k(); id < (token + 1) * top_k(); ++id) {
      const Row products = products_of(h_[id], p_.w2, expert(id) * hidden() + column);
      for (size_t split = 0; split < splits_; ++split) {
        const size_t begin = steps * split / splits_ * kColumns;
        const size_t end = std::min(inner(), steps * (split + 1) / splits_ * kColumns);
        sum = as_float(sum + weight(id) * piece_sum(products, begin, end, mma_));
      }
    }
    return sum;
  }

  const LayerProblem& p_;
  Order mma_;
  size_t splits_;
  std::vector<oracle::DecodeRun> runs_;
  oracle::Routing routing_;
  std::vector<Row> h_;  // [T*K][I]
};

// Of m9's cases and every layer's those that take no time here.
TEST(Calibration, DecodeLayer) {
  auto c = layer_calibration("m9 layer, bf16");
  std::vector<LayerCase> cases(std::begin(m9_cases::kCases), std::end(m9_cases::kCases));
  for (const char* group : {"tiny", "edge", "random"}) {
    for (const LayerCase& one : layer_cases_of(group)) cases.push_back(one);
  }
  for (const LayerCase& one : cases) {
    const int64_t weights = int64_t{one.hidden_size} * one.intermediate_size;
    const int64_t ids = int64_t{one.num_tokens} * one.top_k;
    if (one.refused || ids == 0 || static_cast<size_t>(one.num_tokens) > kMostTokens) continue;
    if (ids * weights > 200'000 || one.num_experts * weights > 200'000) continue;
    LayerProblem p = make_layer(one, mix(1, one.name));
    (p.exact ? c.exact : c.random).push_back(std::move(p));
  }
  for (const Order order : {Order::kTiles, Order::kTruncated}) {
    c.right.push_back({std::string("m9's ways, mma: ") + name_of(order),
                       [order](const LayerProblem& p) { return Decode(p, order).out(); }});
  }
  calibrate(c);
}

}  // namespace
}  // namespace moe::judge
