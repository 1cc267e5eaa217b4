// `drill diff mN` and `drill solution mN`: the learner's file beside the blank one and the
// reference. Neither shows the reference before a pass without asking.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "driver/journal.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr int kUsage = static_cast<int>(Verdict::kUsage);

// A file that is gone with this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    std::string name = std::filesystem::temp_directory_path() / "drill.XXXXXX";
    const int file = mkstemp(name.data());
    if (file < 0) return;
    path_ = name;
    const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    close(file);
    if (!whole) remove();
  }
  ~TemporaryFile() { remove(); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }  // "" when it could not be written

 private:
  void remove() {
    if (!path_.empty()) unlink(path_.c_str());
    path_.clear();
  }
  std::string path_;
};

// Prints how `file` differs from `text`.
int say_difference(const std::string& text,
                   const std::string& text_name,
                   const std::filesystem::path& file,
                   const std::string& file_name) {
  const TemporaryFile other(text);
  if (other.path().empty() || find_program("diff").empty()) {
    say("drill: " +
        std::string(other.path().empty() ? "the temporary folder cannot be written"
                                         : "there is no program diff here") +
        "\n");
    return static_cast<int>(Verdict::kFault);
  }
  const Paint paint = Paint::for_stdout();
  const bool colors = paint.strong("").size() > 0;
  Command command;
  command.arguments = {"diff",
                       "-u",
                       "--strip-trailing-cr",
                       "--label",
                       text_name,
                       "--label",
                       file_name,
                       colors ? "--color=always" : "--color=never",
                       "--",
                       other.path(),
                       file};
  const Outcome outcome = run_process(command);
  if (outcome.exit_code > 1) {
    say(outcome.output + "drill: the files could not be compared\n");
    return static_cast<int>(Verdict::kFault);
  }
  say(outcome.exit_code == 0 ? file_name + " is the same as " + text_name + "\n" : outcome.output);
  return 0;
}

// What a learner answers to a question; without a terminal nothing but --yes does.
bool may_see_solution(const Course& course, const Stage& stage, bool yes) {
  if (standing_of(course, stage).passed) return true;
  const std::vector<Event> events = read_journal(course.root);
  if (solution_seen(events, stage.stem)) return true;
  const std::string id = stage.id;
  if (!yes && isatty(STDIN_FILENO) == 0) {
    say(wrapped("drill: ", id +
                               " does not pass yet. To see the reference all the same: drill "
                               "solution " +
                               id + " --yes (once; it is remembered)"));
    return false;
  }
  if (!yes) {
    say(id + " does not pass yet; there is also drill hint " + id +
        ". Show the reference all the same? [y/N] ");
    std::string answer;
    std::getline(std::cin, answer);
    if (answer != "y" && answer != "Y" && answer != "yes") {
      say("not shown\n");
      return false;
    }
  }
  write_event(course.root, stage.stem, "solution", "seen");
  return true;
}

// The lines of a region with its markers.
std::string region_text(const std::string& text, const Region& region) {
  const std::vector<std::string> lines = split_lines(text);
  std::string result;
  for (int line = region.begin_line; line <= region.end_line; ++line) {
    result += lines[static_cast<std::size_t>(line) - 1] + "\n";
  }
  return result;
}

}  // namespace

int show_diff(const Course& course, const DiffOptions& options) {
  const Stage& stage = *find_stage(options.stage);
  const std::string mine = source_name(stage, "mine");
  if (!std::filesystem::exists(course.mine(stage))) {
    say("drill: " + mine + " is missing; drill reset " + std::string(stage.id) +
        " makes it anew\n");
    return kUsage;
  }
  const bool passed = standing_of(course, stage).passed;
  const bool against_solution =
      options.solution || (passed && !options.skeleton && has_solution(course, stage));
  if (!against_solution) {
    return say_difference(skeleton_of(course, stage), "the blank " + mine, course.mine(stage),
                          mine);
  }
  if (!has_solution(course, stage)) {
    say("drill: this copy of the course has no solutions\n");
    return kUsage;
  }
  if (!may_see_solution(course, stage, false)) return kUsage;
  return say_difference(read_file(course.solution(stage)), source_name(stage, "solution"),
                        course.mine(stage), mine);
}

int show_solution(const Course& course, const SolutionOptions& options) {
  const Stage& stage = *find_stage(options.stage);
  if (!has_solution(course, stage)) {
    say("drill: this copy of the course has no solutions\n");
    return kUsage;
  }
  const std::string text = read_file(course.solution(stage));
  if (options.region.empty()) {
    if (!may_see_solution(course, stage, options.yes)) return kUsage;
    say(text);
    return 0;
  }
  std::vector<std::string> names;
  for (const Region& region : regions_of(course, stage)) {
    const std::string name = region.label.substr(region.label.find('.') + 1);
    names.push_back(name);
    if (options.region != region.label && options.region != name) continue;
    if (!may_see_solution(course, stage, options.yes)) return kUsage;
    say(region_text(text, region));
    return 0;
  }
  say(wrapped("drill: ", std::string(stage.id) + " has no region " + shell_quoted(options.region) +
                             "; it has: " + name_list(names, std::string::npos)));
  return kUsage;
}

}  // namespace moe::driver
