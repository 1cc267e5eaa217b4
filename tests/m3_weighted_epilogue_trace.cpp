#include "m3_weighted_epilogue_trace.h"

#include <cmath>

#include "m1_align_oracle.h"
#include "m2_grouped_gemm_trace.h"

namespace moe::oracle {

using judge::number_text;
using judge::Place;
using judge::Trace;

namespace {

std::string name_of(const char* output, Place place) {
  return std::string(output) + "[" + std::to_string(place.row) + "][" +
         std::to_string(place.column) + "]";
}

double value_of(judge::Bf16 bits) {
  return static_cast<double>(judge::to_float(bits));
}

// What GEMM1 and SwiGLU give one slot of the layer: a row of h, rounded as the kernels do.
std::vector<double> h_of(const LayerProblem& p, int token, int expert) {
  const auto hidden = static_cast<size_t>(p.hidden_size);
  const auto inter = static_cast<size_t>(p.intermediate_size);
  const auto* x = p.x.data() + static_cast<size_t>(token) * hidden;
  const auto* w13 = p.w13.data() + static_cast<size_t>(expert) * 2 * inter * hidden;
  std::vector<double> h;
  for (size_t i = 0; i < inter; ++i) {
    double gate = 0.0;
    double up = 0.0;
    for (size_t d = 0; d < hidden; ++d) {
      gate += value_of(x[d]) * value_of(w13[i * hidden + d]);
      up += value_of(x[d]) * value_of(w13[(inter + i) * hidden + d]);
    }
    h.push_back(value_of(judge::to_bf16(silu(gate) * up)));
  }
  return h;
}

}  // namespace

std::vector<std::string> trace_of(const SiluProblem& p, const Bf16Values& h, Place place) {
  Trace trace;
  if (!trace.has("h", place, p.num_ids, p.intermediate_size)) return trace.take();
  const double gate = p.value(place.row, place.column);
  const double up = p.value(place.row, place.column + p.intermediate_size);
  const auto row = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  trace.line("gate = gate_up[%d][%d] = %.6g", row, column, gate);
  trace.line("up   = gate_up[%d][%d + I] = gate_up[%d][%d] = %.6g", row, column, row,
             column + p.intermediate_size, up);
  trace.line("silu(gate) = gate / (1 + exp(-gate)) = %.6g", silu(gate));
  trace.line("silu(gate) * up = %.6g, rounded once to bf16", silu(gate) * up);
  trace.result(name_of("h", place), bf16_text(silu(gate) * up),
               got_text(h, place, p.intermediate_size));
  return trace.take();
}

std::vector<std::string> trace_of(const WeightedProblem& p, const Bf16Values& out, Place place) {
  Trace trace;
  const GemmProblem& g = p.gemm;
  if (!trace.has("out", place, g.num_ids(), g.n)) return trace.take();
  const auto flat_id = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  if (!trace_flat_id(trace, g, flat_id)) return trace.take();
  trace_sum(trace, g, flat_id, column);
  const double weight = static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)]);
  const double sum = grouped_gemm(g).at(flat_id, column);
  trace.line("times topk_weights[%d] = %.6g, in fp32: %.6g; then rounded once to bf16", flat_id,
             weight, sum * weight);
  trace.result(name_of("out", place), bf16_text(sum * weight), got_text(out, place, g.n));
  return trace.take();
}

std::vector<std::string> trace_of(const CombineProblem& p, const Bf16Values& out, Place place) {
  Trace trace;
  if (!trace.has("out", place, p.num_tokens, p.hidden_size)) return trace.take();
  const auto token = static_cast<int>(place.row);
  trace.line("sum in fp32 over the %d slots of token %d of y[token * K + slot][%d]:", p.top_k,
             token, static_cast<int>(place.column));
  trace.heading({"slot", "row of y", "expert", "y", "sum so far"});
  double sum = 0.0;
  for (int slot = 0; slot < p.top_k; ++slot) {
    const int flat_id = token * p.top_k + slot;
    const double y = p.value(flat_id, place.column);
    sum += p.routed(flat_id) ? y : 0.0;
    trace.row({std::to_string(slot), std::to_string(flat_id),
               std::to_string(p.topk_ids[static_cast<size_t>(flat_id)]),
               p.routed(flat_id) ? number_text(y) : "skipped: no expert", number_text(sum)});
  }
  trace.result(name_of("out", place), bf16_text(sum), got_text(out, place, p.hidden_size));
  return trace.take();
}

std::vector<std::string> trace_of(const LayerProblem& p, const Bf16Values& out, Place place) {
  Trace trace;
  if (!trace.has("out", place, p.num_tokens, p.hidden_size)) return trace.take();
  const auto token = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  const Routing routing = route(p.logits, p.num_tokens, p.num_experts, p.top_k, p.renormalize);
  trace.line("out[%d][%d] = sum over the slots of token %d of weight * y, where", token, column,
             token);
  trace.line("y = sum over i of h[i] * w2[expert][%d][i], and h = silu(gate) * up in bf16", column);
  trace.heading({"slot", "expert", "weight", "y", "weight * y", "sum so far"});
  double sum = 0.0;
  for (int slot = 0; slot < p.top_k; ++slot) {
    const auto flat_id = static_cast<size_t>(token * p.top_k + slot);
    const int expert = routing.topk_ids[flat_id];
    const std::vector<double> h = h_of(p, token, expert);
    const auto row = static_cast<size_t>(expert * p.hidden_size + column);
    double y = 0.0;
    for (size_t i = 0; i < h.size(); ++i) y += h[i] * value_of(p.w2[row * h.size() + i]);
    sum += routing.topk_weights[flat_id] * y;
    trace.row({std::to_string(slot), std::to_string(expert),
               number_text(routing.topk_weights[flat_id]), number_text(y),
               number_text(routing.topk_weights[flat_id] * y), number_text(sum)});
  }
  trace.line("kernels round gate_up and y to bf16 on the way, so the last digits may differ");
  trace.result(name_of("out", place), bf16_text(sum), got_text(out, place, p.hidden_size));
  return trace.take();
}

}  // namespace moe::oracle
