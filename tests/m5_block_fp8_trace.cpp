#include "m5_block_fp8_trace.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "m2_grouped_gemm_trace.h"

namespace moe::oracle {

using judge::number_text;
using judge::Place;
using judge::Trace;

namespace {

constexpr int kBlock = 128;

std::string code_text(judge::Fp8 code) {
  char text[40];
  std::snprintf(text, sizeof text, "0x%02x (%g)", static_cast<unsigned>(code),
                judge::from_e4m3(code));
  return text;
}

// The sums of products of codes of one value, block by block of D.
void trace_blocks(Trace& trace, const Fp8GemmProblem& p, int flat_id, int column) {
  const int row = p.row_of(flat_id);
  const int expert = p.expert_of(flat_id);
  const auto depth = static_cast<size_t>(p.depth);
  const auto* a = p.a_codes.data() + static_cast<size_t>(row) * depth;
  const auto* w =
      p.w_codes.data() + static_cast<size_t>((expert - p.first_expert) * p.n + column) * depth;
  trace.line("sum over blocks of 128 of d: (products of codes) * a_scale * w_scale");
  trace.heading({"d", "sum of codes", "a_scale", "w_scale", "scaled", "sum so far"});
  double sum = 0.0;
  for (int block = 0; block < p.k_blocks(); ++block) {
    const int first = block * kBlock;
    const int last = std::min(first + kBlock, p.depth);
    double codes = 0.0;
    for (int d = first; d < last; ++d) codes += judge::from_e4m3(a[d]) * judge::from_e4m3(w[d]);
    const double a_scale = a_scale_at(p, a_scale_index(p, row, block));
    const double w_scale = w_scale_at(p, w_scale_index(p, expert, column, block));
    sum += codes * a_scale * w_scale;
    trace.row({std::to_string(first) + ".." + std::to_string(last - 1), number_text(codes),
               number_text(a_scale), number_text(w_scale), number_text(codes * a_scale * w_scale),
               number_text(sum)});
  }
  trace.line("a_scale stands in [row %d][block], w_scale in [expert %d][column / 128 = %d][block]",
             row, expert, column / kBlock);
}

}  // namespace

std::vector<std::string> trace_of(const Fp8GemmProblem& p, const std::string& got, Place place) {
  Trace trace;
  if (!trace.has("out", place, p.num_ids(), p.n)) return trace.take();
  const auto flat_id = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  trace.line("flat id %d is token %d, slot %d; its row of a is %d", flat_id, flat_id / p.top_k,
             flat_id % p.top_k, p.row_of(flat_id));
  if (!p.routed(flat_id)) {
    trace.line("it has no expert, so nobody writes this row");
    return trace.take();
  }
  trace_blocks(trace, p, flat_id, column);
  if (!p.topk_weights.empty()) {
    trace.line("times topk_weights[%d] = %.6g", flat_id,
               static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)]));
  }
  const double want = grouped_gemm_fp8(p).at(flat_id, column);
  trace.result("out[" + std::to_string(flat_id) + "][" + std::to_string(column) + "]",
               p.out_fp32 ? number_text(want) : bf16_text(want), got);
  return trace.take();
}

std::vector<std::string> trace_of(const QuantizeProblem& p, const Quantized* got, Place place) {
  Trace trace;
  const auto rows = static_cast<int64_t>(p.num_matrices) * p.n;
  if (!trace.has("codes", place, rows, p.depth)) return trace.take();
  const Quantized want = quantize(p);
  const int64_t matrix = place.row / p.n;
  const int64_t first_row = place.row % p.n / kBlock * kBlock;
  const int64_t first = place.column / kBlock * kBlock;
  double amax = 0.0;
  for (int64_t r = first_row; r < std::min<int64_t>(first_row + kBlock, p.n); ++r) {
    for (int64_t d = first; d < std::min<int64_t>(first + kBlock, p.depth); ++d) {
      const auto index = static_cast<size_t>((matrix * p.n + r) * p.depth + d);
      const double value = std::fabs(static_cast<double>(judge::to_float(p.values[index])));
      if (!std::isnan(value)) amax = std::max(amax, value);
    }
  }
  const int64_t n_blocks = (p.n + kBlock - 1) / kBlock;
  const int64_t k_blocks = (p.depth + kBlock - 1) / kBlock;
  const auto scale_at =
      static_cast<size_t>((matrix * n_blocks + first_row / kBlock) * k_blocks + first / kBlock);
  const auto index = static_cast<size_t>(place.row * p.depth + place.column);
  const double scale = static_cast<double>(want.scales[scale_at]);
  trace.line("its block: columns %d to %d, amax (largest |value| that is a number) %.9g",
             static_cast<int>(first),
             static_cast<int>(std::min<int64_t>(first + kBlock, p.depth)) - 1, amax);
  trace.line("scale = max(amax, 1e-10) / 448%s = %.9g",
             p.power_of_two ? ", then the power of two at or above" : "", scale);
  const double value = static_cast<double>(judge::to_float(p.values[index]));
  trace.line("value / scale = %.6g / %.6g = %.6g, to the nearest e4m3 code", value, scale,
             value / scale);
  trace.result("scales[" + std::to_string(scale_at) + "]", number_text(scale),
               got == nullptr ? "" : number_text(static_cast<double>(got->scales[scale_at])));
  trace.result("codes[" + std::to_string(place.row) + "][" + std::to_string(place.column) + "]",
               code_text(want.codes[index]), got == nullptr ? "" : code_text(got->codes[index]));
  return trace.take();
}

}  // namespace moe::oracle
