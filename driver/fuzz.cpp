// `drill fuzz [mN] --seconds 60`: random shapes, routings and broken rules against the oracle.
#include "driver/verbs.h"

namespace moe::driver {

int run_fuzz(const Course& course, const RunOptions& options) {
  if (!options.stage.empty()) return run_stage(course, options);
  // The first verdict that is no pass is what the whole run says; all stages run all the same.
  int result = 0;
  RunOptions one = options;
  one.fuzz_seconds /= static_cast<double>(std::size(kStages));
  for (const Stage& stage : kStages) {
    one.stage = stage.id;
    const int code = run_stage(course, one);
    if (result == 0) result = code;
  }
  return result;
}

}  // namespace moe::driver
