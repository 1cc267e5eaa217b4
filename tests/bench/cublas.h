// cublas.h: the times of cublas_baseline, in a process of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "shapes.h"

namespace moe::bench {

// By kind ("dense", "grouped", "capacity"): us of GEMM1 and GEMM2.
using CublasTimes = std::map<std::string, std::vector<double>>;

// Empty when the program failed. `brief` times the dense GEMMs only.
CublasTimes run_cublas(const std::string& program,
                       const Shape& shape,
                       const std::vector<int>& counts,
                       bool brief);

// What a capacity of 1.25 average experts does to this routing.
struct Capacity {
  int rows = 0;          // of an expert
  double dropped = 0.0;  // share of the (token, slot) pairs that find no room
  double wasted = 0.0;   // share of the FLOPs that are spent on empty rows
};
Capacity capacity_of(const std::vector<int>& counts);

// For the test: what a line "dense 1 264.1" says is added.
void add_cublas_line(const std::string& line, CublasTimes& times);

}  // namespace moe::bench
