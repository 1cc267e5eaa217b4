// Taking a cost card: one case on the traced runner.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/cost/card.h"
#include "driver/process.h"
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
  std::filesystem::path runner;  // what it starts: the traced runner, or what leads to it
  std::filesystem::path binary;  // to name lines by; empty: they stay without names
  std::filesystem::path root;    // of the course that the runner was built in
  std::filesystem::path counts;  // two files that are gone afterwards
  std::filesystem::path report;
  std::string side;  // mine or solution
};

// What the runner must find in its environment.
std::vector<std::string> cost_environment(const std::filesystem::path& counts,
                                          const CostCase& one,
                                          std::size_t l2_bytes);

// The first call of the case that runs kernels counts.
CostRun measure_cost(const CostProgram& program,
                     const CostCase& one,
                     std::size_t l2_bytes,
                     const Watcher& watcher = {});

}  // namespace moe::driver
