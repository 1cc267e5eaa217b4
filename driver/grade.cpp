// `drill grade`: builds the grader, a program of its own (driver/grade/), and becomes it.
#include <unistd.h>

#include "driver/build.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {

int run_grade(const Course& course, const std::vector<std::string>& arguments) {
  Build build = build_targets(course, "host", {"drill_grade"}, "drill_grade.log");
  if (!build.done && read_file(build.log).find("unknown target") != std::string::npos) {
    // toml++ was not there when the tree was configured; it may be now.
    Command configure;
    configure.arguments = {"cmake", "--preset", "host"};
    configure.folder = course.root;
    run_process(configure);
    build = build_targets(course, "host", {"drill_grade"}, "drill_grade.log");
  }
  if (!build.done) {
    say(build.compiler_text);
    say("drill: the grader could not be built. Is everything installed? Run: ./setup.sh --grade\n");
    return static_cast<int>(Verdict::kFault);
  }
  const std::string program = course.tree("host") / "drill_grade";
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  setenv("DRILL_ROOT", course.root.c_str(), 1);
  execv(program.c_str(), pointers.data());
  say("drill: " + program + " cannot be started\n");
  return static_cast<int>(Verdict::kFault);
}

}  // namespace moe::driver
