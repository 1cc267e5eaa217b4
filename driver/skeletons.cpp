// `drill skeletons`: for the repository itself. mine/ is generated from solutions/.
#include <fstream>

#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

// 1-based number of the first line that differs.
std::size_t first_difference(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = split_lines(a);
  const std::vector<std::string> right = split_lines(b);
  std::size_t line = 0;
  while (line < left.size() && line < right.size() && left[line] == right[line]) ++line;
  return line + 1;
}

}  // namespace

int run_skeletons(const Course& course, const SkeletonsOptions& options) {
  int differing = 0;
  for (const Stage& stage : kStages) {
    const std::string skeleton = skeleton_of(course, stage);
    const std::string file = source_name(stage, "mine");
    const std::string mine = read_file(course.mine(stage));
    if (mine == skeleton) {
      say(file + " is what " + source_name(stage, "solution") + " generates\n");
    } else if (options.write) {
      std::ofstream(course.mine(stage), std::ios::binary) << skeleton;
      say(file + " written\n");
    } else {
      ++differing;
      say(file + ":" + std::to_string(first_difference(mine, skeleton)) + ": differs from what " +
          source_name(stage, "solution") + " generates (drill skeletons --write)\n");
    }
  }
  return differing == 0 ? 0 : static_cast<int>(Verdict::kWrong);
}

}  // namespace moe::driver
