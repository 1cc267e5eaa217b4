#include "m4_group_m_trace.h"

#include <algorithm>

#include "m2_grouped_gemm_trace.h"
#include "m3_weighted_epilogue_oracle.h"

namespace moe::oracle {

using judge::Place;
using judge::Trace;

std::vector<std::string> trace_of(const EpilogueProblem& p,
                                  const std::vector<judge::Bf16>& out,
                                  Place place) {
  Trace trace;
  const GemmProblem& g = p.gemm;
  if (!trace.has("out", place, g.num_ids(), p.columns())) return trace.take();
  const auto flat_id = static_cast<int>(place.row);
  const auto column = static_cast<int>(place.column);
  if (!trace_flat_id(trace, g, flat_id)) return trace.take();
  trace_sum(trace, g, flat_id, column);
  if (p.swiglu) {
    const int expert = g.topk_ids[place.row < 0 ? 0 : static_cast<size_t>(flat_id)];
    const int row = g.rows_are_slots ? flat_id : flat_id / g.top_k;
    const double gate = dot(g, row, expert, column, g.depth);
    const double up = dot(g, row, expert, column + p.columns(), g.depth);
    trace.line("that is gate; up is the same with column %d of w: %.6g", column + p.columns(), up);
    trace.line("silu(gate) * up = %.6g * %.6g = %.6g", silu(gate), up, silu(gate) * up);
  }
  if (!p.topk_weights.empty()) {
    trace.line("times topk_weights[%d] = %.6g", flat_id,
               static_cast<double>(p.topk_weights[static_cast<size_t>(flat_id)]));
  }
  const std::string name = "out[" + std::to_string(flat_id) + "][" + std::to_string(column) + "]";
  trace.result(name, bf16_text(grouped_gemm(p).at(flat_id, column)),
               got_text(out, place, p.columns()));
  return trace.take();
}

std::vector<std::string> trace_of(const TileGrid& grid,
                                  const std::vector<TilePlace>& got,
                                  Place place) {
  Trace trace;
  if (!trace.has("tile", place, grid.num_pid_m, grid.num_pid_n)) return trace.take();
  const auto m = static_cast<int>(place.row);
  const auto n = static_cast<int>(place.column);
  const int group = m / grid.group_m;
  const int first = group * grid.group_m;
  const int rows = std::min(grid.num_pid_m - first, grid.group_m);
  const int before = first * grid.num_pid_n;
  const int pid = before + n * rows + (m - first);
  trace.line(
      "group %d starts at row group * group_m = %d and has min(num_pid_m - %d, group_m) = %d "
      "rows",
      group, first, first, rows);
  trace.line("the groups before it have %d tiles; inside, a column of %d tiles comes after another",
             before, rows);
  trace.line("pid = %d + pid_n * %d + (pid_m - %d) = %d", before, rows, first, pid);
  const std::string tile = "(" + std::to_string(m) + ", " + std::to_string(n) + ")";
  std::string found;
  if (static_cast<size_t>(pid) < got.size()) {
    const TilePlace& yours = got[static_cast<size_t>(pid)];
    found = "(" + std::to_string(yours.m) + ", " + std::to_string(yours.n) + ")";
  }
  trace.result("the tile of pid " + std::to_string(pid), tile, found);
  return trace.take();
}

}  // namespace moe::oracle
