// `drill read [mN]`: builds the notes as a site in build/site and opens it.
#include <cstdlib>

#include "driver/build.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

// Opens a browser where there is a desktop to open it on.
void open_in_browser(const std::filesystem::path& page) {
  const bool desktop =
      std::getenv("DISPLAY") != nullptr || std::getenv("WAYLAND_DISPLAY") != nullptr;
  if (!desktop || !is_terminal() || find_program("xdg-open").empty()) return;
  Command command;
  command.arguments = {"xdg-open", page};
  command.limit_s = 10;
  run_process(command);
}

}  // namespace

int run_read(const Course& course, const ReadOptions& options) {
  const Stage* stage = options.stage.empty() ? nullptr : find_stage(options.stage);
  const std::string note =
      stage == nullptr ? "content/start.md" : "content/" + std::string(stage->stem) + ".md";
  std::string missing;
  for (const char* tool : {"cmark-gfm", "source-highlight"}) {
    if (find_program(tool).empty()) missing += std::string(" ") + tool;
  }
  if (!missing.empty()) {
    say(wrapped("drill read: ", "the site needs two programs: apt-get install" + missing +
                                    ". Without them read " + note + ", which needs nothing."));
    return static_cast<int>(Verdict::kSkip);
  }
  StatusLine status;
  status.show("writing build/site");
  const Build build = build_targets(course, "host", {"drill_book"}, "read.log");
  const std::filesystem::path folder = course.root / "build" / "site";
  Outcome written;
  if (build.done) {
    Command command;
    command.arguments = {course.tree("host") / "drill_book", folder};
    command.environment = {"DRILL_ROOT=" + course.root.string()};
    written = run_process(command);
  }
  status.clear();
  if (!build.done || written.exit_code != 0) {
    say("drill read: " + (build.done ? written.output : build.compiler_text) + "\n");
    return static_cast<int>(Verdict::kFault);
  }
  const std::string name = stage == nullptr ? "index" : stage->stem;
  const std::filesystem::path page = folder / (name + ".html");
  say("open   file://" + page.string() + "\n");
  if (!options.quiet) open_in_browser(page);
  return 0;
}

}  // namespace moe::driver
