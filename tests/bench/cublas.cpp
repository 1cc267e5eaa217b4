#include "cublas.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace moe::bench {

void add_cublas_line(const std::string& line, CublasTimes& times) {
  char kind[32] = {};
  int gemm = 0;
  double us = 0.0;
  if (std::sscanf(line.c_str(), "%31s %d %lf", kind, &gemm, &us) != 3) return;
  std::vector<double>& both = times[kind];
  both.resize(2, 0.0);
  if (gemm == 1 || gemm == 2) both[static_cast<size_t>(gemm - 1)] = us;
}

CublasTimes run_cublas(const std::string& program,
                       const Shape& shape,
                       const std::vector<int>& counts,
                       bool brief) {
  std::string command = "'" + program + "'";
  for (const int number :
       {shape.num_tokens * shape.top_k, shape.hidden_size, shape.intermediate_size}) {
    command += " " + std::to_string(number);
  }
  for (const int count : counts) command += " " + std::to_string(count);
  if (brief) command += " --brief";
  CublasTimes times;
  std::FILE* output = popen(command.c_str(), "r");
  if (output == nullptr) return times;
  char line[256];
  while (std::fgets(line, sizeof line, output) != nullptr) add_cublas_line(line, times);
  const int status = pclose(output);
  if (status != 0 && times.count("dense") == 0) times.clear();
  return times;
}

Capacity capacity_of(const std::vector<int>& counts) {
  const auto pairs = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  const auto experts = static_cast<int64_t>(counts.size());
  Capacity result;
  if (pairs == 0) return result;
  result.rows = static_cast<int>((5 * pairs + 4 * experts - 1) / (4 * experts));
  int64_t kept = 0;
  for (const int count : counts) kept += std::min(count, result.rows);
  result.dropped = 1.0 - static_cast<double>(kept) / static_cast<double>(pairs);
  result.wasted = 1.0 - static_cast<double>(kept) /
                            (static_cast<double>(experts) * static_cast<double>(result.rows));
  return result;
}

}  // namespace moe::bench
