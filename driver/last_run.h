// What the last run of a stage said, from the report that it left in the build tree.
#pragma once

#include <optional>
#include <string>

#include "driver/course.h"
#include "driver/report.h"

namespace moe::driver {

struct LastRun {
  Report report;
  Verdict verdict = Verdict::kFault;
  bool current = false;  // the learner's file has not been saved since

  // The case that shows the failure best, or nullptr.
  const CaseRecord* failure() const;
};

// Of the learner's file, on the emulator or on a GPU, whichever was later; nothing when the stage
// has not run here.
std::optional<LastRun> last_run(const Course& course, const Stage& stage);

}  // namespace moe::driver
