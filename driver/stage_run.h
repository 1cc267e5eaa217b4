// Building and testing one stage on one backend, shared by `drill mN` and `drill selftest`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/build.h"
#include "driver/process.h"
#include "driver/report.h"

namespace moe::driver {

struct TestRun {
  Report report;
  Verdict verdict = Verdict::kFault;
  Outcome outcome;            // of the test binary
  std::string fault;          // why the verdict is kFault or kUsage; else ""
  std::filesystem::path log;  // what the test binary printed
};

struct TestOptions {
  std::string side;  // which executable: "mine", "solution" or "skeleton"
  bool full = false;
  std::string case_name;   // "" for all
  std::string capability;  // that a layer requires; a stage's own test program knows
  std::optional<std::uint64_t> seed;
  int shuffle = 0;          // other than 0: the cases in an order of this number
  double fuzz_seconds = 0;  // other than 0: random cases instead of the stage's own
  bool map = false;         // tell which values are wrong
  std::string print;        // "row,column": tell how that value is formed
  // For `drill check`: another build of the runner, what it is told, a program around it.
  std::string tree;                      // "": the backend's own
  std::vector<std::string> environment;  // "NAME=value"
  std::filesystem::path runner;          // "": the tree's own
  int case_limit_s = 0;                  // 0: what the tests take for enough
  int largest_kib = 0;                   // other than 0: cases with more data are skipped
};

// A short seed for a run that was not given one: another each time, or what DRILL_SEED says.
std::uint64_t fresh_seed();

// Runs the stage's tests on its runner in the tree of the backend; both must be built. Faults are
// resolved to source lines. `progress` is told of every case as it is judged.
TestRun run_tests(const Course& course,
                  const Stage& stage,
                  const Backend& backend,
                  const TestOptions& options,
                  const std::function<void(const CaseRecord&)>& progress);

}  // namespace moe::driver
