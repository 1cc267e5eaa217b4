// `drill list`: every stage with its file, its blanks and its last result. Runs nothing.
#include <algorithm>

#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {

int list_stages(const Course& course) {
  const Paint paint = Paint::for_stdout();
  std::size_t title_width = 0;
  std::size_t file_width = 0;
  for (const Stage& stage : kStages) {
    title_width = std::max(title_width, std::string_view(stage.title).size());
    file_width = std::max(file_width, source_name(stage, "mine").size());
  }
  for (const Stage& stage : kStages) {
    const Standing standing = standing_of(course, stage);
    const std::string written =
        std::to_string(standing.blanks - standing.open) + "/" + std::to_string(standing.blanks);
    say(padded(stage.id, 5) + paint.strong(padded(stage.title, title_width + 3)) +
        padded(source_name(stage, "mine"), file_width + 3) + "written " + written + "\n");
    say("     " + padded(standing.word, 8) + standing.detail + "\n");
  }
  return 0;
}

}  // namespace moe::driver
