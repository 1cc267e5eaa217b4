// Runs the tests of a stage on a submission's runner, behind the wall, and says what they found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "driver/backend.h"
#include "driver/course.h"
#include "driver/grade/confine.h"
#include "driver/grade/result.h"
#include "driver/grade/scheme.h"

namespace moe::grade {

class Examiner {
 public:
  Examiner(const driver::Course& course,
           const driver::Backend& backend,
           const Scheme& scheme,
           const Confinement& confinement,
           std::optional<std::uint64_t> secret)
      : course_(course),
        backend_(backend),
        scheme_(scheme),
        confinement_(confinement),
        secret_(secret) {}

  // `expected` are the names of the cases that must be judged; empty: not known yet. `folder`
  // belongs to this run alone.
  StageResult examine(const Stage& stage,
                      const std::filesystem::path& runner,
                      const std::string& side,
                      const std::vector<CaseResult>& expected,
                      const std::filesystem::path& folder,
                      int worker);

 private:
  StageResult run_once(const Stage& stage,
                       const std::filesystem::path& launcher,
                       const std::string& side,
                       const std::filesystem::path& folder,
                       int worker);
  void resolve_faults(StageResult& result,
                      const std::filesystem::path& runner,
                      const std::filesystem::path& folder,
                      int worker) const;
  Timing time(const Stage& stage,
              const std::filesystem::path& launcher,
              const std::filesystem::path& folder) const;

  const driver::Course& course_;
  const driver::Backend& backend_;
  const Scheme& scheme_;
  const Confinement& confinement_;
  std::optional<std::uint64_t> secret_;
  std::mutex device_;  // one submission at a time on a GPU
};

// The file that a test program starts in place of the runner.
std::filesystem::path write_launcher(const std::filesystem::path& folder,
                                     const std::vector<std::string>& command);

// Sums what bench_stage reports for both sides; a problem where one is missing or wrong.
Timing timing_of(const std::string& bench_report);

}  // namespace moe::grade
