// How one value of m4's GEMM is formed, and which program works on a tile.
#pragma once

#include <string>
#include <vector>

#include "judge/trace.h"
#include "m4_group_m_oracle.h"

namespace moe::oracle {

std::vector<std::string> trace_of(const EpilogueProblem& p,
                                  const std::vector<judge::Bf16>& out,
                                  judge::Place place);

// Row and column are pid_m and pid_n; `got` is what every pid returned, or empty.
std::vector<std::string> trace_of(const TileGrid& grid,
                                  const std::vector<TilePlace>& got,
                                  judge::Place place);

}  // namespace moe::oracle
