// Does a stage give the same result however often, in whatever order and company its cases run?
// A part of `drill selftest`.
#pragma once

#include <functional>
#include <string>

#include "driver/gtest_count.h"
#include "driver/stage_run.h"

namespace moe::driver {

struct Repeats {
  Tally tally;          // one for each case: equal in all runs, or not
  std::string details;  // of those that differ
};

// Runs the solution's cases five times and once shuffled, all with one seed, and some cases alone;
// states and outputs must be equal bit by bit. `full` takes the full set. `show` is told what runs.
Repeats check_repeats(const Course& course,
                      const Stage& stage,
                      const Backend& backend,
                      bool full,
                      const std::function<void(const std::string&)>& show);

}  // namespace moe::driver
