// Taking a cost card: one case on the traced runner.
#pragma once

#include <filesystem>
#include <string>

#include "driver/cost/card.h"
#include "driver/report.h"

namespace moe::driver {

inline constexpr const char* kTracedTree = "cpu-traced";

struct CostRun {
  Verdict verdict = Verdict::kFault;  // of the case
  std::string trouble;                // why there is no card; empty: there is one
  std::string shape;                  // "GEMM1 T=33 K=2 E=8 N=128 D=128 block_m=16"
  std::string sentence;               // of a case that did not pass
  CostCard card;
};

struct CostProgram {
  std::filesystem::path test;    // the stage's test program
  std::filesystem::path runner;  // of the traced tree
  std::filesystem::path root;    // of the course that the runner was built in
  std::filesystem::path folder;  // for files that are gone afterwards
  std::string side;              // mine or solution
};

// `cache_bytes` of the modelled L2. The first call of the case that runs kernels counts.
CostRun measure_cost(const CostProgram& program, const CostCase& one, std::size_t cache_bytes);

}  // namespace moe::driver
