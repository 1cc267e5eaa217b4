// `drill reset mN`: the blank file again; the old one is kept.
#include <unistd.h>

#include <ctime>
#include <iostream>
#include <string>

#include "driver/journal.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/trash.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

bool confirmed(const std::string& file) {
  say("Replace " + file + " by the blank file? Yours is kept in .drill/trash. [y/N] ");
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

int reset_stage(const Course& course, const ResetOptions& options) {
  const Stage& stage = *find_stage(options.stage);
  const std::string file = source_name(stage, "mine");
  const std::string skeleton = skeleton_of(course, stage);
  const bool exists = std::filesystem::exists(course.mine(stage));
  const std::string mine = read_file(course.mine(stage));
  if (exists && mine == skeleton) {
    say(file + " is already blank\n");
    return 0;
  }
  if (exists && !options.yes) {
    if (isatty(STDIN_FILENO) == 0) {
      say("drill: to replace " + file + " without a question, say: drill reset " +
          std::string(stage.id) + " --yes\n");
      return static_cast<int>(Verdict::kUsage);
    }
    if (!confirmed(file)) {
      say("nothing was changed\n");
      return 0;
    }
  }
  std::filesystem::path saved;
  if (exists) {
    // Nothing is replaced before the old file is safe.
    try {
      saved = keep_copy(course, course.mine(stage));
    } catch (const std::filesystem::filesystem_error& error) {
      say(wrapped("drill: ", error.path2().string() +
                                 " cannot be written (a full disk, or a "
                                 "read-only folder?), so nothing was changed"));
      return static_cast<int>(Verdict::kFault);
    }
  }
  if (!write_file(course.mine(stage), skeleton)) {
    say("drill: " + course.mine(stage).string() + " cannot be written\n");
    return static_cast<int>(Verdict::kFault);
  }
  if (exists) write_event(course.root, stage.stem, "reset", saved.filename().string());
  say(file + " is blank again\n");
  if (exists) {
    say("undo   " + undo_command(course, saved, course.mine(stage)) + "\n");
  }
  return 0;
}

}  // namespace moe::driver
