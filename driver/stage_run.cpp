#include "driver/stage_run.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "driver/fault.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

// Reads the report as it grows and passes on every case that is new.
class ReportFollower {
 public:
  ReportFollower(std::filesystem::path file, std::function<void(const CaseRecord&)> progress)
      : file_(std::move(file)), progress_(std::move(progress)) {}

  void look() {
    std::ifstream file(file_, std::ios::binary);
    file.seekg(read_);
    std::string text((std::istreambuf_iterator<char>(file)), {});
    text.resize(text.rfind('\n') + 1);  // whole lines only; npos + 1 is 0
    read_ += static_cast<std::streamoff>(text.size());
    for (const CaseRecord& one : parse_report(text).cases) progress_(one);
  }

 private:
  std::filesystem::path file_;
  std::function<void(const CaseRecord&)> progress_;
  std::streamoff read_ = 0;
};

// Gone with this object unless it is kept under another name.
struct DraftFile {
  explicit DraftFile(std::filesystem::path draft) : path(std::move(draft)) {}
  ~DraftFile() { std::filesystem::remove(path, ignored); }
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;

  void keep_as(const std::filesystem::path& name) const {
    std::error_code error;
    std::filesystem::rename(path, name, error);
  }

  std::filesystem::path path;
  std::error_code ignored;
};

std::string tree_of(const Backend& backend, const TestOptions& options) {
  return options.tree.empty() ? backend.name() : options.tree;
}

std::filesystem::path runner_of(const Course& course,
                                const Stage& stage,
                                const Backend& backend,
                                const TestOptions& options) {
  if (!options.runner.empty()) return options.runner;
  return runner_path(course, tree_of(backend, options), stage, options.side);
}

std::vector<std::string> test_arguments(const Course& course,
                                        const Stage& stage,
                                        const Backend& backend,
                                        const TestOptions& options,
                                        const std::filesystem::path& report) {
  // The skeleton is compiled as the learner's side.
  const std::string side = options.side == "skeleton" ? "mine" : options.side;
  std::vector<std::string> arguments{test_path(course, stage),
                                     "--runner",
                                     runner_of(course, stage, backend, options),
                                     "--side",
                                     side,
                                     "--backend",
                                     backend.name(),
                                     "--report",
                                     report};
  if (options.full) arguments.emplace_back("--full");
  if (options.seed) {
    arguments.insert(arguments.end(), {"--seed", std::to_string(*options.seed)});
  }
  if (options.fuzz_seconds > 0) {
    arguments.insert(arguments.end(), {"--fuzz", std::to_string(options.fuzz_seconds)});
  }
  if (options.shuffle != 0) {
    arguments.insert(arguments.end(), {"--shuffle", std::to_string(options.shuffle)});
  }
  if (options.map) arguments.emplace_back("--map");
  if (!options.print.empty()) arguments.insert(arguments.end(), {"--print", options.print});
  if (!options.case_name.empty()) {
    arguments.insert(arguments.end(), {"--case", options.case_name});
  }
  if (options.case_limit_s > 0) {
    arguments.insert(arguments.end(),
                     {"--case-limit-ms", std::to_string(1000 * options.case_limit_s)});
  }
  if (options.largest_kib > 0) {
    arguments.insert(arguments.end(), {"--largest-kib", std::to_string(options.largest_kib)});
  }
  if (!options.capability.empty()) {
    arguments.insert(arguments.end(), {"--requires-capability", options.capability});
  }
  return arguments;
}

std::string last_line(const std::string& text) {
  const std::vector<std::string> lines = split_lines(text);
  return lines.empty() ? std::string() : lines.back();
}

// The case of the run before whose name is nearest to a mistyped one, or "".
std::string nearest_case(const std::string& last_report, const std::string& name) {
  std::vector<std::string> names;
  for (const CaseRecord& one : parse_report(last_report).cases) names.push_back(one.name);
  return nearest(name, names, 1 + name.size() / 3);
}

// Holds the cases against the exit code: a verdict that both agree on, or a fault of ours.
void judge(TestRun& run) {
  const int code = run.outcome.exit_code;
  const Verdict of_cases = verdict_of(run.report);
  if (code == static_cast<int>(Verdict::kUsage)) {
    run.verdict = Verdict::kUsage;
    run.fault = run.report.usage.empty() ? last_line(run.outcome.output) : run.report.usage;
  } else if (run.outcome.signal != 0) {
    run.fault = "the test program was ended by signal " + std::to_string(run.outcome.signal);
  } else if (!run.report.ended) {
    run.fault = "the test program ended without a verdict, with exit code " + std::to_string(code);
  } else if (run.report.damaged_lines > 0) {
    run.fault = "the test program wrote a damaged report";
  } else if (code != static_cast<int>(of_cases) || of_cases == Verdict::kFault) {
    run.fault = std::string("the cases say ") + word_of(of_cases) +
                ", but the test program's exit code is " + std::to_string(code);
  } else {
    run.verdict = of_cases;
  }
}

}  // namespace

std::uint64_t fresh_seed() {
  if (const char* fixed = std::getenv("DRILL_SEED")) return std::strtoull(fixed, nullptr, 0);
  return 1000 + std::random_device{}() % 9000;
}

TestRun run_tests(const Course& course,
                  const Stage& stage,
                  const Backend& backend,
                  const TestOptions& options,
                  const std::function<void(const CaseRecord&)>& progress) {
  const std::filesystem::path tree = course.tree(tree_of(backend, options));
  const std::string base = std::string(stage.stem) + "." + options.side;
  const std::filesystem::path last_report = tree / (base + ".report.jsonl");
  const std::string near_case = nearest_case(read_file(last_report), options.case_name);
  // Its own until it is complete: two commands may test the same stage at once.
  const DraftFile report_file(tree / (base + ".report." + std::to_string(getpid())));

  Command command;
  command.arguments = test_arguments(course, stage, backend, options, report_file.path);
  command.folder = course.root;
  command.environment = options.environment;
  ReportFollower follower(report_file.path, progress);
  Watcher watcher;
  watcher.on_tick = [&follower] { follower.look(); };

  TestRun run;
  run.outcome = run_process(command, watcher);
  follower.look();
  run.log = tree / (base + ".test.log");
  std::ofstream(run.log, std::ios::binary) << run.outcome.output;
  run.report = parse_report(read_file(report_file.path));
  const std::filesystem::path runner =
      runner_path(course, tree_of(backend, options), stage, options.side);
  for (CaseRecord& one : run.report.cases) {
    if (!one.fault.empty()) one.fault = resolve_fault(one.fault, runner, course.root);
  }
  judge(run);
  if (!run.report.cases.empty()) report_file.keep_as(last_report);
  if (run.verdict == Verdict::kUsage && !near_case.empty()) {
    run.fault += ". Did you mean " + near_case + "?";
  }
  return run;
}

}  // namespace moe::driver
