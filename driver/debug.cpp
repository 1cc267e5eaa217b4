// `drill debug mN --case group/name`: a debugger in the child that runs the case, stopped where the
// region begins.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "driver/build.h"
#include "driver/ground.h"
#include "driver/last_run.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

// The region to stop in: the one asked for, the diagnosed one, else the first of the stage.
std::string choose_region(const Course& course, const Stage& stage, const DebugOptions& options) {
  const std::vector<Region> regions = regions_of(course, stage);
  for (const Region& region : regions) {
    const std::string name = region.label.substr(region.label.find('.') + 1);
    if (options.region == region.label || options.region == name) return region.label;
  }
  if (!options.region.empty()) return {};
  const auto last = last_run(course, stage);
  const CaseRecord* failure = last ? last->failure() : nullptr;
  if (failure != nullptr && !failure->region.empty()) return failure->region;
  for (const Region& region : regions) {
    if (!region.given) return region.label;
  }
  return {};
}

// The first line of code at or after the region's marker: comments have no instructions.
int code_line(const std::string& source, const std::string& region) {
  const std::vector<std::string> lines = split_lines(source);
  const int marker = marker_line(source, region);
  for (std::size_t i = static_cast<std::size_t>(marker); marker > 0 && i < lines.size(); ++i) {
    const std::size_t first = lines[i].find_first_not_of(" \t\r");
    const bool blank = first == std::string::npos;
    if (!blank && lines[i].compare(first, 2, "//") != 0) return static_cast<int>(i) + 1;
  }
  return marker;
}

std::vector<std::string> debugger_arguments(const std::string& debugger,
                                            const std::vector<std::string>& breakpoints,
                                            const std::vector<std::string>& program) {
  std::vector<std::string> arguments{debugger, "-q"};
  const auto command = [&](const std::string& text) {
    arguments.insert(arguments.end(), {"-ex", text});
  };
  command("set breakpoint pending on");
  command("set follow-fork-mode child");  // the child holds the kernel, not the test program
  command("set detach-on-fork on");
  command("set print thread-events off");
  for (const std::string& breakpoint : breakpoints) command("break " + breakpoint);
  command("run");
  arguments.emplace_back("--args");
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

[[noreturn]] void become(const std::vector<std::string>& arguments) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers;
  for (std::string& copy : copies) pointers.push_back(copy.data());
  pointers.push_back(nullptr);
  execvp(pointers.front(), pointers.data());
  say("drill: " + arguments.front() + " cannot be started: " + std::strerror(errno) + "\n");
  std::exit(static_cast<int>(Verdict::kFault));
}

int say_no_debugger(const std::string& name) {
  say(wrapped("drill: ", "there is no " + name + " here. " +
                             (name == "gdb" ? "Debian and Ubuntu: sudo apt-get install gdb. "
                                            : "It comes with the CUDA Toolkit. ") +
                             "Without it, printf in the kernel is shown by the run, and "
                             "--print ROW,COLUMN tells how a value should be formed."));
  return static_cast<int>(Verdict::kUsage);
}

// Builds what the debugger is to run; false when that failed, and said so.
bool build_program(const Course& course,
                   const Stage& stage,
                   const Backend& backend,
                   const std::string& side) {
  const std::string target = std::string(stage.stem) + "_test";
  Build build = build_targets(course, "host", {target}, target + ".log");
  if (build.done) build = configure_tree(course, backend.name(), backend);
  if (build.done) build = build_runner(course, backend.name(), stage, side);
  if (!build.done) say(build.compiler_text + "BUILD  see " + build.log.string() + "\n");
  return build.done;
}

}  // namespace

int debug_stage(const Course& course, const DebugOptions& options) {
  const Stage& stage = *find_stage(options.stage);
  const std::string side = options.solution ? "solution" : "mine";
  const Backend backend = choose_backend(options.gpu ? Wish::kGpu : Wish::kCpu);
  if (options.gpu && !backend.cuda) {
    say("SKIP   " + std::string(stage.id) + " --gpu: " + backend.refusal + ".\n");
    return static_cast<int>(Verdict::kSkip);
  }
  const std::string name = backend.cuda ? "cuda-gdb" : "gdb";
  const std::filesystem::path debugger =
      find_program(name, {backend.nvcc.parent_path(), "/usr/local/cuda/bin"});
  if (debugger.empty() && !options.show) return say_no_debugger(name);
  if (const std::string trouble = ground_trouble(course); !trouble.empty()) {
    say(wrapped("drill: ", trouble + "."));
    return static_cast<int>(Verdict::kFault);
  }
  const std::string region = choose_region(course, stage, options);
  if (region.empty()) {
    say("drill: " + std::string(stage.id) + " has no region " + shell_quoted(options.region) +
        "\n");
    return static_cast<int>(Verdict::kUsage);
  }
  std::string case_name = options.case_name;
  const auto last = last_run(course, stage);
  if (case_name.empty() && last && last->failure() != nullptr) case_name = last->failure()->name;
  if (case_name.empty()) {
    say("drill: say which case: drill debug " + std::string(stage.id) + " --case tiny/t4k2\n");
    return static_cast<int>(Verdict::kUsage);
  }
  if (!build_program(course, stage, backend, side)) return static_cast<int>(Verdict::kBuild);
  const std::string file = source_name(stage, side);
  const int line = code_line(read_file(course.root / file), region);
  constexpr const char* kOneDayMs = "86400000";  // a debugger is in no hurry
  const std::vector<std::string> program{test_path(course, stage),
                                         "--runner",
                                         runner_path(course, backend.name(), stage, side),
                                         "--side",
                                         side,
                                         "--backend",
                                         backend.name(),
                                         "--case",
                                         case_name,
                                         "--case-limit-ms",
                                         kOneDayMs};
  const std::vector<std::string> arguments = debugger_arguments(
      debugger.empty() ? name : debugger.string(), {file + ":" + std::to_string(line)}, program);
  say("debug  " + case_name + ", stopped in region " + region + " at " + file + ":" +
      std::to_string(line) + "\n");
  say(wrapped("       ", backend.cuda
                             ? "Kernels are compiled with -lineinfo, not -G: lines are known, most "
                               "variables are not."
                             : "One block after another; print threadIdx, print blockIdx, and "
                               "`break ... if threadIdx.x == 5` work. quit leaves."));
  if (options.show) {
    std::string text;
    for (const std::string& argument : arguments) text += shell_quoted(argument) + " ";
    say("EMULATOR_HANG=0 EMULATOR_WORKERS=1 " + text + "\n");
    return 0;
  }
  setenv("EMULATOR_HANG", "0", 1);
  setenv("EMULATOR_WORKERS", "1", 1);
  become(arguments);
}

}  // namespace moe::driver
