// `drill try warp`: one of the small kernels of content/start.cu, as content/start.md tells.
#include "driver/build.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {

int run_try(const Course& course, const std::string& idea) {
  restore_missing_files(course);
  StatusLine status;
  status.show("building content/start.cu");
  const Build configured = configure_tree(course, "cpu", Backend());
  const Build build =
      configured.done ? build_targets(course, "cpu", {"start"}, "start.log") : configured;
  status.clear();
  if (!build.done) {
    say(build.compiler_text + "BUILD  content/start.cu   full log: " +
        build.log.lexically_relative(course.root).string() + "\n");
    return static_cast<int>(Verdict::kBuild);
  }
  Command command;
  command.arguments = {course.tree("cpu") / "content" / "start"};
  if (!idea.empty()) command.arguments.push_back(idea);
  command.limit_s = 60;
  const Outcome outcome = run_process(command);
  if (outcome.exit_code == static_cast<int>(Verdict::kUsage)) {
    command.arguments.resize(1);
    say("drill try: there is no idea " + shell_quoted(idea) + ". There are:\n" +
        run_process(command).output);
  } else {
    say(outcome.output);
  }
  return outcome.exit_code;
}

}  // namespace moe::driver
