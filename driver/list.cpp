// `drill list`: every stage with its last result, its file and its blanks. Runs nothing.
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {

int list_stages(const Course& course) {
  const Paint paint = Paint::for_stdout();
  for (const Stage& stage : kStages) {
    const Standing standing = standing_of(course, stage);
    say(standing_line(stage, standing, paint));
    const std::string written = std::to_string(standing.blanks - standing.open) + " of " +
                                counted(standing.blanks, "region") + " written";
    say("     " + source_name(stage, "mine") + "   " + written + "\n");
  }
  return 0;
}

}  // namespace moe::driver
