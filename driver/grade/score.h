// From verdicts to points, by grading.toml.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/grade/scheme.h"

namespace moe::grade {

struct GroupScore {
  std::string group;
  int cases = 0;
  int passed = 0;
  double earned = 0;
  double maximum = 0;
};

struct StageScore {
  bool scored = true;  // false: a fault of the grader or the machine
  double earned = 0;
  double maximum = 0;
  std::vector<GroupScore> groups;
  std::optional<GroupScore> performance;
  std::optional<GroupScore> cost;  // of its three limits, how many are kept
  double ratio = 0;                // of the student's time to the reference's
  std::string reason;              // why the points are fewer than the cases alone would say
};

// `expected` are the cases of our solution on this machine: what it skips, nobody is asked for.
// With `timed` the performance share counts.
StageScore score_stage(const StageResult& result,
                       const std::vector<CaseResult>& expected,
                       const Scheme& scheme,
                       const std::string& stage_id,
                       bool timed);

// The share of the performance points at a ratio of times: 1 down to 0.
double performance_curve(double ratio, const Scheme& scheme);

// "12.5": at most two digits behind the point.
std::string points_text(double points);

}  // namespace moe::grade
