#include "m2_grouped_gemm_trace.h"

#include <algorithm>

namespace moe::oracle {

using judge::Bf16;
using judge::number_text;

namespace {

constexpr Bf16 kPoison = 0x7fa5;  // as the tests fill their outputs

double value_of(Bf16 bits) {
  return static_cast<double>(judge::to_float(bits));
}

}  // namespace

std::string got_text(const std::vector<Bf16>& out, judge::Place place, int columns) {
  const auto index = static_cast<size_t>(place.row * columns + place.column);
  if (index >= out.size()) return {};
  return out[index] == kPoison ? "nothing (never written)" : number_text(value_of(out[index]));
}

std::string bf16_text(double value) {
  return number_text(value_of(judge::to_bf16(value)));
}

bool trace_flat_id(judge::Trace& trace, const GemmProblem& p, int flat_id) {
  trace.line("flat id %d is token %d, slot %d", flat_id, flat_id / p.top_k, flat_id % p.top_k);
  if (!p.routed(flat_id)) {
    trace.line("it has no expert (topk_ids[%d] = %d), so nobody writes this row", flat_id,
               p.topk_ids[static_cast<size_t>(flat_id)]);
    return false;
  }
  const auto& table = p.sorted_token_ids;
  const auto place = std::find(table.begin(), table.end(), flat_id) - table.begin();
  trace.line("its expert is %d; it stands in row %d of sorted_token_ids, in M block %d",
             p.topk_ids[static_cast<size_t>(flat_id)], static_cast<int>(place),
             static_cast<int>(place) / p.block_m);
  return true;
}

void trace_sum(judge::Trace& trace, const GemmProblem& p, int flat_id, int column) {
  const int expert = p.topk_ids[static_cast<size_t>(flat_id)];
  const int row = p.rows_are_slots ? flat_id : flat_id / p.top_k;
  trace.line("row of a: %s = %d (%s)", p.rows_are_slots ? "flat_id" : "flat_id / top_k", row,
             p.rows_are_slots ? "one row for each token and slot" : "one row for each token");
  trace.line("sum over d of a[%d][d] * w[%d][%d][d]:", row, expert, column);
  trace.heading({"d", "a", "w", "a * w", "sum so far"});
  double sum = 0.0;
  for (int d = 0; d < p.depth; ++d) {
    const double a = value_of(p.a[static_cast<size_t>(row * p.depth + d)]);
    const auto w_row = static_cast<size_t>((expert - p.first_expert) * p.n + column);
    const double w = value_of(p.w[w_row * static_cast<size_t>(p.depth) + static_cast<size_t>(d)]);
    sum += a * w;
    trace.row(
        {std::to_string(d), number_text(a), number_text(w), number_text(a * w), number_text(sum)});
  }
}

std::vector<std::string> trace_of(const GemmProblem& p,
                                  const std::vector<Bf16>& out,
                                  judge::Place place) {
  judge::Trace trace;
  if (!trace.has("out", place, p.num_ids(), p.n)) return trace.take();
  const auto flat_id = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  if (!trace_flat_id(trace, p, flat_id)) return trace.take();
  trace_sum(trace, p, flat_id, column);
  const double want = grouped_gemm(p).at(place.row, column);
  trace.result("out[" + std::to_string(flat_id) + "][" + std::to_string(column) + "]",
               bf16_text(want), got_text(out, place, p.n));
  return trace.take();
}

}  // namespace moe::oracle
