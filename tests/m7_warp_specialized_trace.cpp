#include "m7_warp_specialized_trace.h"

#include "m2_grouped_gemm_trace.h"
#include "m3_weighted_epilogue_oracle.h"

namespace moe::oracle {

using judge::number_text;

namespace {

double value_of(judge::Bf16 bits) {
  return static_cast<double>(judge::to_float(bits));
}

// What the row of the table says; false where nobody computes it.
bool trace_row(judge::Trace& trace, const SortedProblem& p, int row) {
  const int block = row / kSortedBlock;
  trace.line("row %d of out is row %d of sorted_token_ids, in block %d", row, row, block);
  if (row >= p.num_tokens_post_padded) {
    trace.line("num_tokens_post_padded is %d, so nobody works on it", p.num_tokens_post_padded);
    return false;
  }
  if (p.expert_of(row) < 0) {
    trace.line("expert_ids[%d] = %d is no expert, so nobody works on it", block,
               p.expert_ids[static_cast<size_t>(block)]);
    return false;
  }
  const int flat_id = p.flat_id(row);
  if (!p.is_real(row)) {
    trace.line("sorted_token_ids[%d] = %d is padding: what is stored there is not read", row,
               flat_id);
    return false;
  }
  trace.line("its flat id is %d: token %d, slot %d; its expert is %d", flat_id, flat_id / p.top_k,
             flat_id % p.top_k, p.expert_of(row));
  return true;
}

void trace_sum(judge::Trace& trace, const SortedProblem& p, int row, int row_of_w) {
  const auto depth = static_cast<size_t>(p.depth());
  const int expert = p.expert_of(row);
  const auto w_row = static_cast<size_t>((expert - p.first_expert) * p.rows_of_w() + row_of_w);
  const auto* a = p.a.data() + static_cast<size_t>(p.row_of_a(row) - p.first_row) * depth;
  const auto* w = p.w.data() + w_row * depth;
  trace.line("sum over d of a[%d][d] * w[%d][%d][d]:", static_cast<int>(p.row_of_a(row)), expert,
             row_of_w);
  trace.heading({"d", "a", "w", "a * w", "sum so far"});
  double sum = 0.0;
  for (size_t d = 0; d < depth; ++d) {
    const double product = value_of(a[d]) * value_of(w[d]);
    sum += product;
    trace.row({std::to_string(d), number_text(value_of(a[d])), number_text(value_of(w[d])),
               number_text(product), number_text(sum)});
  }
}

}  // namespace

std::vector<std::string> trace_of(const SortedProblem& p,
                                  const std::vector<judge::Bf16>& out,
                                  judge::Place place) {
  judge::Trace trace;
  if (!trace.has("out", place, p.capacity(), p.columns())) return trace.take();
  const auto row = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  if (!trace_row(trace, p, row)) return trace.take();
  const SumOf sum = right_sums(p);
  trace_sum(trace, p, row, column);
  const double first = sum(row, column);
  double want = first;
  if (p.is_gemm1) {
    trace_sum(trace, p, row, p.columns() + column);
    const double up = sum(row, p.columns() + column);
    want = silu(first) * up;
    trace.line("silu(gate) * up = %.6g * %.6g = %.6g, rounded once to bf16", silu(first), up, want);
  } else {
    const auto flat_id = static_cast<size_t>(p.flat_id(row));
    const double weight = static_cast<double>(p.topk_weights[flat_id]);
    want = first * weight;
    trace.line("times topk_weights[%d] = %.6g, in fp32: %.6g; then rounded once to bf16",
               static_cast<int>(flat_id), weight, want);
  }
  trace.result("out[" + std::to_string(row) + "][" + std::to_string(column) + "]", bf16_text(want),
               got_text(out, place, p.columns()));
  return trace.take();
}

}  // namespace moe::oracle
