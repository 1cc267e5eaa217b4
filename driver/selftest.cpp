// `drill selftest`: does the course itself work here? Every test of the repository that is quick
// enough to run on a laptop: the tests of emulator and command, every solution against every case,
// and every skeleton, which must be TODO and nothing worse.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>

#include "driver/gtest_count.h"
#include "driver/repeats.h"
#include "driver/stage_run.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr double kProgramLimitSeconds = 300;
constexpr double kLongProgramLimitSeconds = 1800;

// What one part of the self-test found.
struct Finding {
  std::string what;
  Tally tally;
  std::string details;
};

class SelfTest {
 public:
  SelfTest(const Course& course, bool long_set) : course_(course), long_(long_set) {}

  int run();

 private:
  using Clock = std::chrono::steady_clock;

  // One line per step, with the time since the start; details of failures below it.
  void step(const Finding& finding);
  void step(const std::string& what, const Tally& tally, const std::string& details = "") {
    step(Finding{what, tally, details});
  }
  void show(const std::string& what);
  void build_tree(const std::string& tree);
  void check_skeletons();
  std::vector<std::filesystem::path> programs() const;
  Finding run_program(const std::filesystem::path& program);
  void run_on_emulator();
  void run_transcripts();
  Finding run_solution(const Stage& stage, const Backend& backend);
  Finding run_skeleton(const Stage& stage);
  Finding run_repeats(const Stage& stage, const Backend& backend);
  TestRun run_side(const Stage& stage, const Backend& backend, const std::string& side);
  void check_cuda();

  const Course& course_;
  bool long_;
  Clock::time_point start_ = Clock::now();
  std::mutex terminal_;  // guards what follows
  StatusLine status_;
  Tally total_;
};

void SelfTest::show(const std::string& what) {
  const std::lock_guard<std::mutex> lock(terminal_);
  status_.show(what);
}

void SelfTest::step(const Finding& finding) {
  const std::lock_guard<std::mutex> lock(terminal_);
  const Tally& tally = finding.tally;
  status_.clear();
  total_.add(tally);
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  char time[32];
  std::snprintf(time, sizeof time, "[%4.0f s] ", elapsed);
  std::string result;
  if (tally.passed + tally.failed + tally.skipped > 0) result = ": " + tally.text();
  say(time + finding.what + result + "\n" + finding.details);
}

// The learner's own file may be broken: only what else fails to build counts.
void SelfTest::build_tree(const std::string& tree) {
  show("building build/" + tree);
  const Build configured = configure_tree(course_, tree, Backend());
  if (!configured.done) {
    step("configure build/" + tree, {0, 1, 0}, configured.compiler_text);
    return;
  }
  const Build build = build_targets(course_, tree, {}, "selftest.log");
  std::string failed;
  for (const std::string& line : split_lines(read_file(build.log))) {
    const bool ours = line.rfind("FAILED: ", 0) == 0 && line.find(".mine") == std::string::npos;
    if (ours) failed += "  " + line + "\n";
  }
  const bool good = build.done || failed.empty();
  step("build build/" + tree, good ? Tally{1, 0, 0} : Tally{0, 1, 0},
       good ? "" : build.compiler_text + failed);
}

void SelfTest::check_skeletons() {
  // In the repository itself mine/ must be what the solutions generate; a learner's clone differs,
  // and that is what it is for.
  const bool repository = std::getenv("CI") != nullptr;
  for (const Stage& stage : kStages) {
    Tally tally;
    std::string details;
    try {
      const std::string skeleton = skeleton_of(course_, stage);
      const bool equal = read_file(course_.mine(stage)) == skeleton;
      tally = equal ? Tally{1, 0, 0} : repository ? Tally{0, 1, 0} : Tally{0, 0, 1};
      if (!equal) details = "  " + source_name(stage, "mine") + " has been edited\n";
    } catch (const MarkerError& error) {
      tally = {0, 1, 0};
      details = "  " + std::string(error.what()) + "\n";
    }
    step("skeleton of " + std::string(stage.id) + " is up to date", tally, details);
  }
}

Finding SelfTest::run_program(const std::filesystem::path& program) {
  const std::string name = program.lexically_relative(course_.root).string();
  show(name);
  Command command;
  command.arguments = {program};
  command.environment = {"GTEST_COLOR=no", "DRILL_ROOT=" + course_.root.string()};
  if (long_) command.environment.emplace_back("DRILL_LONG=1");
  command.folder = course_.root;
  command.limit_s = long_ ? kLongProgramLimitSeconds : kProgramLimitSeconds;
  const Outcome outcome = run_process(command);
  GtestResult result = count_gtest(outcome.output);
  const bool is_gtest = result.tally.passed + result.tally.failed + result.tally.skipped > 0;
  if (!is_gtest) result.tally = outcome.exit_code == 0 ? Tally{1, 0, 0} : Tally{0, 1, 0};
  if (outcome.exit_code != 0 && result.tally.failed == 0) ++result.tally.failed;
  std::string details;
  for (const std::string& failure : result.failures) details += "  failed: " + failure + "\n";
  if (result.tally.failed > 0) details += outcome.output;
  if (outcome.timed_out) details += "  ended after " + seconds_text(command.limit_s) + "\n";
  return {name, result.tally, details};
}

std::vector<std::filesystem::path> SelfTest::programs() const {
  const std::filesystem::path host = course_.tree("host") / "tests";
  std::vector<std::filesystem::path> found{host / "driver_test", host / "judge_test",
                                           host / "bench_test"};
  std::error_code ignored;
  if (!std::filesystem::exists(found[0], ignored)) found.erase(found.begin());  // a class
  const std::filesystem::path tests = course_.tree("cpu") / "tests";
  for (std::filesystem::recursive_directory_iterator entry(tests, ignored), end; entry != end;
       entry.increment(ignored)) {
    const std::filesystem::path path = entry->path();
    if (path.filename() == "CMakeFiles") entry.disable_recursion_pending();
    if (entry->is_regular_file(ignored) && path.extension().empty() &&
        access(path.c_str(), X_OK) == 0) {
      found.push_back(path);
    }
  }
  std::sort(found.rbegin(), found.rend());  // those of the host take longest: first
  return found;
}

// All programs and stages, one on each core; lines come as they end.
void SelfTest::run_on_emulator() {
  std::vector<std::function<void()>> tasks;
  for (const std::filesystem::path& program : programs()) {
    tasks.emplace_back([this, program] { step(run_program(program)); });
  }
  // The later stages take longest: first.
  for (auto stage = std::rbegin(kStages); stage != std::rend(kStages); ++stage) {
    tasks.emplace_back([this, stage] {  // in turn: they write the same report
      step(run_solution(*stage, Backend()));
      step(run_skeleton(*stage));
      step(run_repeats(*stage, Backend()));
    });
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) tasks[i]();
  };
  std::vector<std::future<void>> workers;
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 0; i < cores; ++i) workers.push_back(std::async(std::launch::async, work));
  for (std::future<void>& worker : workers) worker.wait();
  for (std::future<void>& worker : workers) worker.get();  // Ctrl-C comes out here
}

// The command in a copy of the course, on good and on bad days; some of them build most anew. A
// class copy has none.
void SelfTest::run_transcripts() {
  const std::filesystem::path program = course_.tree("host") / "tests" / "golden_test";
  std::error_code ignored;
  if (std::filesystem::exists(program, ignored)) step(run_program(program));
}

TestRun SelfTest::run_side(const Stage& stage, const Backend& backend, const std::string& side) {
  TestOptions options;
  options.side = side;
  options.full = true;
  return run_tests(course_, stage, backend, options, [&](const CaseRecord& one) {
    show(std::string(stage.id) + " " + side + "  " + one.name);
  });
}

Finding SelfTest::run_solution(const Stage& stage, const Backend& backend) {
  const TestRun run = run_side(stage, backend, "solution");
  Tally tally;
  std::string details;
  for (const CaseRecord& one : run.report.cases) {
    if (one.state == CaseState::kPass) {
      ++tally.passed;
    } else if (one.state == CaseState::kSkip) {
      ++tally.skipped;
      details += "  skipped: " + one.name + "  " + one.sentence + "\n";
    } else {
      ++tally.failed;
      details += "  failed: " + one.name + "  " + one.sentence + "\n" + one.fault;
    }
  }
  if (!run.fault.empty()) {
    ++tally.failed;
    details += "  " + run.fault + "; see " + run.log.string() + "\n";
  }
  const char* where = backend.cuda ? "on the GPU" : "on the emulator";
  return {std::string(stage.id) + " solution, every case, " + where, tally, details};
}

Finding SelfTest::run_skeleton(const Stage& stage) {
  Backend emulator;
  const TestRun run = run_side(stage, emulator, "skeleton");
  Tally tally;
  std::string details;
  for (const CaseRecord& one : run.report.cases) {
    if (one.state == CaseState::kPass || one.state == CaseState::kTodo) {
      ++tally.passed;
    } else if (one.state == CaseState::kSkip) {
      ++tally.skipped;
    } else {
      ++tally.failed;
      details += "  neither TODO nor PASS: " + one.name + "  " + one.sentence + "\n" + one.fault;
    }
  }
  if (run.verdict != Verdict::kTodo && tally.failed == 0) {
    ++tally.failed;
    details += std::string("  is not TODO but ") + word_of(run.verdict) + ". " + run.fault + "\n";
  }
  return {std::string(stage.id) + " skeleton, every case, is TODO", tally, details};
}

Finding SelfTest::run_repeats(const Stage& stage, const Backend& backend) {
  const Repeats repeats = check_repeats(
      course_, stage, backend, long_,
      [&](const std::string& what) { show(std::string(stage.id) + " solution  " + what); });
  const char* where = backend.cuda ? "on the GPU" : "on the emulator";
  return {std::string(stage.id) + (long_ ? " full set" : " quick set") +
              " five times and shuffled, the same " + where,
          repeats.tally, repeats.details};
}

// With a toolkit everything must compile for CUDA; with a GPU too, the solutions must pass on it.
void SelfTest::check_cuda() {
  Machine machine{find_gpu(), find_nvcc()};
  if (machine.nvcc.empty()) {
    step("CUDA: no nvcc here, nothing compiled for a GPU", {0, 0, 1});
    return;
  }
  if (!has_reference(course_, kStages[0], "cuda")) {
    step("CUDA: this copy has no references for GPUs, nothing compiled for one", {0, 0, 1});
    return;
  }
  const bool has_gpu = machine.gpu.has_value();
  if (!has_gpu) machine.gpu = Gpu{"", "9.0"};  // what every stage can be compiled for
  Backend backend = choose_backend(Wish::kAny, machine);
  // Without a GPU to be for, a tree that exists stays as it is.
  const std::string architectures = configured_architectures(course_);
  if (!has_gpu && !architectures.empty()) backend.architecture = architectures;
  show("configuring build/cuda");
  const Build configured = configure_tree(course_, "cuda", backend);
  if (!configured.done) {
    step("configure build/cuda", {0, 1, 0}, configured.compiler_text);
    return;
  }
  for (const Stage& stage : kStages) {
    show("compiling " + std::string(stage.id) + " for CUDA");
    const std::string stem = stage.stem;
    const std::string refusal =
        refuse_backend(backend, stage.capability, "drill " + std::string(stage.id));
    if (!refusal.empty()) {
      step(std::string(stage.id) + " on the GPU: " + refusal, {0, 0, 1});
      continue;
    }
    const Build build = build_targets(course_, "cuda", {stem + ".solution", stem + ".skeleton"},
                                      stem + ".selftest.log");
    step(std::string(stage.id) + " compiles for sm_" + backend.architecture,
         build.done ? Tally{1, 0, 0} : Tally{0, 1, 0}, build.done ? "" : build.compiler_text);
    if (!build.done || !has_gpu) continue;
    step(run_solution(stage, backend));
    step(run_repeats(stage, backend));
  }
  if (!has_gpu) step("GPU: none here, no solution ran on one", {0, 0, 1});
}

int SelfTest::run() {
  restore_missing_files(course_);
  for (const char* tree : {"host", "cpu"}) build_tree(tree);
  check_skeletons();
  run_on_emulator();
  if (long_) run_transcripts();
  check_cuda();
  say(total_.text() + "\n");
  return total_.failed == 0 ? 0 : static_cast<int>(Verdict::kWrong);
}

}  // namespace

int run_selftest(const Course& course, bool long_set) {
  return SelfTest(course, long_set).run();
}

}  // namespace moe::driver
