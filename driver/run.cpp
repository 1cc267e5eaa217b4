// `drill mN`: build the learner's file (or the solution), test it, say what was found.
#include <ctime>

#include "driver/build_advice.h"
#include "driver/cost/cases.h"
#include "driver/ground.h"
#include "driver/headline.h"
#include "driver/journal.h"
#include "driver/last_run.h"
#include "driver/look.h"
#include "driver/stage_run.h"
#include "driver/state.h"
#include "driver/transcript.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

int exit_code(Verdict verdict) {
  return static_cast<int>(verdict);
}

// One run, from the options to the exit code.
class StageRun {
 public:
  StageRun(const Course& course, const RunOptions& options)
      : course_(course), options_(options), paint_(Paint::for_stdout()) {
    scene_.stage = *find_stage(options.stage);
    scene_.side = options.solution ? "solution" : "mine";
    case_name_ = options.case_name;
    scene_.again = again_command();
  }

  int run();

 private:
  int skip(const std::string& why) const;
  std::string again_command() const;
  std::filesystem::path source_path() const;
  std::string relative(const std::filesystem::path& path) const;
  bool choose_case();
  bool prepare(double& seconds);
  bool build_tests(double& seconds);
  bool build_runner(double& seconds);
  int fault(const std::string& what, const std::filesystem::path& log);
  void report_build_failure(const Build& build);
  int test();
  void remember(Verdict verdict, const Report& report);
  void say_looks(const Report& report) const;
  Verdict time_it();
  void say_next();

  const Course& course_;
  const RunOptions& options_;
  Paint paint_;
  Scene scene_;
  Backend backend_;
  std::string case_name_;
  int failure_ = 0;  // exit code of what went wrong while building
};

int StageRun::run() {
  if (const std::string trouble = ground_trouble(course_); !trouble.empty()) {
    say(wrapped("drill: ", trouble + "."));
    return exit_code(Verdict::kFault);
  }
  for (const std::string& name : restore_missing_files(course_)) {
    say(name + " was missing; it is there again, blank\n");
  }
  const bool as_machine_code = options_.solution && !has_solution(course_, scene_.stage);
  if (!as_machine_code && !std::filesystem::exists(source_path())) {
    say("drill: " + source_name(scene_.stage, scene_.side) + " is missing\n");
    return exit_code(Verdict::kUsage);
  }
  scene_.source = read_file(source_path());
  if (const std::string trouble = source_trouble(scene_.source); !trouble.empty()) {
    say(wrapped("BUILD  ", source_name(scene_.stage, scene_.side) + " " + trouble));
    return exit_code(Verdict::kBuild);
  }
  if (!options_.solution) scene_.blanks = blanks_of(course_, scene_.stage);

  const Wish wish = options_.cpu ? Wish::kCpu : options_.gpu ? Wish::kGpu : Wish::kAny;
  backend_ = choose_backend(wish);
  scene_.emulator = !backend_.cuda;
  if (wish == Wish::kGpu && !backend_.cuda) {
    return skip(std::string(scene_.stage.id) + " --gpu: " + backend_.refusal +
                ". Nothing was run.");
  }
  const std::string id = scene_.stage.id;
  const std::string refusal = refuse_backend(backend_, scene_.stage.capability, "drill " + id);
  if (!refusal.empty()) return skip(id + ": " + refusal);
  if (options_.solution && !has_reference(course_, scene_.stage, backend_.cuda ? "cuda" : "cpu")) {
    return skip(id + ": this copy of the course has no reference for " +
                (backend_.cuda ? "GPUs; drill " + id + " --solution --cpu runs the other."
                               : std::string("this kind of processor.")));
  }
  if (!choose_case()) return exit_code(Verdict::kUsage);
  say(header_text(scene_, backend_.phrase, paint_));
  double seconds = 0;
  if (!prepare(seconds)) return failure_;
  say("build  " + seconds_text(seconds) + "\n");
  return test();
}

int StageRun::skip(const std::string& why) const {
  const std::string text = wrapped("SKIP   ", why);
  say(paint_.open(text.substr(0, 4)) + text.substr(4));
  return exit_code(Verdict::kSkip);
}

// --map and --print are about one case: without --case about the one that failed last.
bool StageRun::choose_case() {
  if ((!options_.map && options_.print.empty()) || !options_.case_name.empty()) return true;
  if (const auto last = options_.solution ? std::nullopt : last_run(course_, scene_.stage)) {
    if (const CaseRecord* failure = last->failure()) case_name_ = failure->name;
  }
  if (!case_name_.empty()) return true;
  const std::string look = options_.map ? " --map" : " --print " + options_.print;
  say(wrapped("drill: ", "no case failed in the last run; say which one: " + scene_.again +
                             " --case tiny/t4k2" + look));
  return false;
}

std::string StageRun::again_command() const {
  std::string command = "drill " + std::string(scene_.stage.id);
  if (options_.solution) command += " --solution";
  if (options_.cpu) command += " --cpu";
  if (options_.gpu) command += " --gpu";
  if (options_.full) command += " --full";
  return command;
}

std::filesystem::path StageRun::source_path() const {
  return options_.solution ? course_.solution(scene_.stage) : course_.mine(scene_.stage);
}

std::string StageRun::relative(const std::filesystem::path& path) const {
  return path.lexically_relative(course_.root).string();
}

bool StageRun::prepare(double& seconds) {
  const std::filesystem::path runner =
      runner_path(course_, backend_.name(), scene_.stage, scene_.side);
  if (!std::filesystem::exists(runner) &&
      !std::filesystem::exists(test_path(course_, scene_.stage))) {
    say("building the tests and " + std::string(backend_.cuda ? "the runner" : "the emulator") +
        " (once, up to a minute) ...\n");
  }
  return build_tests(seconds) && build_runner(seconds);
}

bool StageRun::build_tests(double& seconds) {
  const std::string target = std::string(scene_.stage.stem) + "_test";
  const Build build = build_targets(course_, "host", {target}, target + ".log");
  seconds += build.seconds;
  if (build.done) return true;
  say(build.compiler_text);
  failure_ =
      fault("the tests of " + std::string(scene_.stage.id) + " cannot be built. If you changed " +
                "files outside of mine/, change them back; else it is a fault of ours",
            build.log);
  return false;
}

bool StageRun::build_runner(double& seconds) {
  const std::string tree = backend_.name();
  const Build configured = configure_tree(course_, tree, backend_);
  if (!configured.done) {
    say(configured.compiler_text);
    const std::string cmake = cmake_trouble();
    failure_ = fault("build/" + tree + " cannot be configured; " +
                         (cmake.empty() ? "`drill doctor` may know why" : cmake),
                     configured.log);
    return false;
  }
  const Build build = driver::build_runner(course_, tree, scene_.stage, scene_.side);
  seconds += configured.seconds + build.seconds;
  if (build.done) {
    const std::size_t warnings = count_diagnostics(build.compiler_text, "warning");
    if (warnings > 0) say(build.compiler_text);
    return true;
  }
  report_build_failure(build);
  return false;
}

void StageRun::report_build_failure(const Build& build) {
  say(build.compiler_text);
  if (build.compiler_text.find("No space left on device") != std::string::npos) {
    failure_ = fault(
        "the disk is full (or the folder for temporary files, $TMPDIR): make room, then "
        "run this again. Your file was not touched",
        build.log);
    return;
  }
  // Only an error in or about the stage's own file is its author's.
  const bool theirs =
      build.compiler_text.find(source_name(scene_.stage, scene_.side)) != std::string::npos ||
      build.compiler_text.find("undefined reference") != std::string::npos;
  if (!theirs) {
    failure_ =
        fault("the runner of " + std::string(scene_.stage.id) + " cannot be built", build.log);
    return;
  }
  BuildFailure details;
  details.compiler_text = build.compiler_text;
  details.stem = scene_.stage.stem;
  details.source = scene_.source;
  const std::string contract =
      read_file(course_.root / "drills" / (std::string(scene_.stage.stem) + ".h"));
  details.contract = contract;
  say("\n" + build_failure_text(scene_, build, relative(build.log), advice_for(details), paint_));
  remember(Verdict::kBuild, {});
  failure_ = exit_code(Verdict::kBuild);
}

int StageRun::fault(const std::string& what, const std::filesystem::path& log) {
  const std::string text = wrapped("FAULT  ", what + ".");
  say("\n" + paint_.bad(text.substr(0, 5)) + text.substr(5));
  say("  log     " + relative(log) + "\n");
  return exit_code(Verdict::kFault);
}

int StageRun::test() {
  TestOptions test_options;
  test_options.side = scene_.side;
  test_options.full = options_.full;
  test_options.case_name = case_name_;
  test_options.map = options_.map;
  test_options.print = options_.print;
  test_options.fuzz_seconds = options_.fuzz_seconds;
  test_options.seed = options_.seed.value_or(fresh_seed());
  StatusLine status;
  std::size_t judged = 0;
  const TestRun run =
      run_tests(course_, scene_.stage, backend_, test_options, [&](const CaseRecord& one) {
        status.show("test   " + counted(++judged, "case") + "  " + one.name);
      });
  status.clear();
  if (run.verdict == Verdict::kUsage) {
    say("drill: " + run.fault + "\n");
    return exit_code(run.verdict);
  }
  if (!run.report.cases.empty()) say(test_text(run.report, run.outcome.seconds));
  say(output_text(run.report, scene_));
  if (run.verdict == Verdict::kFault) {
    return fault(run.fault + ". This is a fault of the course, not of your file", run.log);
  }
  say(verdict_text(run.report, scene_, paint_));
  say_looks(run.report);
  const CaseRecord* died = run.verdict == Verdict::kCrash  ? run.report.first(CaseState::kCrash)
                           : run.verdict == Verdict::kHang ? run.report.first(CaseState::kHang)
                                                           : nullptr;
  const bool in_case = died != nullptr && died->name != kBeforeFirstCase;
  if (in_case) say(replay_text(course_, scene_, backend_, *died));
  const Verdict verdict = run.verdict == Verdict::kPass ? time_it() : run.verdict;
  remember(verdict, run.report);
  if (verdict == Verdict::kPass) say_next();
  return exit_code(verdict);
}

// What --map and --print asked for, or why there is nothing to show.
void StageRun::say_looks(const Report& report) const {
  bool traced = false;
  bool mapped = false;
  for (const CaseRecord& one : report.cases) {
    traced = traced || !one.trace.empty();
    mapped = mapped || !one.map.cells.empty();
    say(look_text(one, paint_));
  }
  if (!options_.print.empty() && !traced) {
    say(labelled_line("print", "the values of this case are not formed term by term"));
  }
  if (options_.map && !mapped) {
    say(labelled_line("map", "no value was found wrong, so there is nothing to draw"));
  }
}

// The timed line after a PASS of all cases on a GPU; SLOW where --gate asks for more.
Verdict StageRun::time_it() {
  if (!case_name_.empty()) return Verdict::kPass;
  if (!backend_.cuda) {
    const bool has_card = find_cost_case(scene_.stage.id) != nullptr;
    if (has_card && !options_.solution && options_.fuzz_seconds == 0) {
      say(labelled_line("cost", "drill cost " + std::string(scene_.stage.id) +
                                    " counts what each line asks of memory"));
    }
    if (options_.gate > 0) {
      say(labelled_line("gate", "not judged: there are no times without a GPU"));
    }
    return Verdict::kPass;
  }
  if (options_.no_time) return Verdict::kPass;
  StatusLine status;
  status.show("timing ...");
  const HeadlineRun run = run_headline(course_, scene_.stage, options_.solution);
  status.clear();
  if (!run.trouble.empty()) {
    say(labelled_line("time", "not taken: " + run.trouble));
    return Verdict::kPass;
  }
  say(headline_text(run.headline));
  if (!is_slow(run.headline, options_.gate)) return Verdict::kPass;
  say(slow_text(run.headline, options_.gate, paint_));
  return Verdict::kSlow;
}

// Only what all cases of the learner's file said is worth remembering.
void StageRun::remember(Verdict verdict, const Report& report) {
  const bool all_cases = case_name_.empty() && options_.fuzz_seconds == 0;
  if (options_.solution || !all_cases || verdict == Verdict::kSkip) return;
  const StateLock lock(course_.root);
  StageState state;
  state.hash = work_hash(course_, scene_.stage, scene_.source);
  for (const char* word = word_of(verdict); *word != '\0'; ++word) {
    state.verdict += static_cast<char>(*word - 'A' + 'a');
  }
  state.time = std::time(nullptr);
  if (verdict == Verdict::kPass || verdict == Verdict::kSlow) {
    state.detail = options_.full ? "full" : "quick";
  } else {
    const CaseRecord* failed = verdict == Verdict::kHang    ? report.first(CaseState::kHang)
                               : verdict == Verdict::kCrash ? report.first(CaseState::kCrash)
                                                            : report.first(CaseState::kWrong);
    state.detail = failed != nullptr ? failed->name : "-";
  }
  States states = read_states(course_.root);
  // A quick pass does not undo what a full one has shown about the same file.
  const StageState& before = states[scene_.stage.stem];
  const bool full_before =
      before.hash == state.hash && before.verdict == "pass" && before.detail == "full";
  if (verdict == Verdict::kPass && full_before) state.detail = "full";
  // That nothing could run here says nothing about a file that ran elsewhere.
  if (verdict == Verdict::kSkip && before.hash == state.hash) return;
  states[scene_.stage.stem] = state;
  const CaseRecord* failed = report.first(CaseState::kWrong);
  const std::string code = failed == nullptr || failed->code.empty() ? "-" : failed->code;
  const bool written =
      write_states(course_.root, states) &&
      write_event(course_.root, scene_.stage.stem, "run",
                  state.verdict + " " + code + " " + (state.detail.empty() ? "-" : state.detail));
  if (!written) say("note   .drill cannot be written: this result is not remembered\n");
}

void StageRun::say_next() {
  std::string next = "drill " + std::string(scene_.stage.id);
  const bool whole_file_of_learner = !options_.solution && case_name_.empty();
  if (whole_file_of_learner) next = next_command(course_, find_stage(scene_.stage.id));
  say("next   " + paint_.strong(next) + "\n");
}

}  // namespace

int run_stage(const Course& course, const RunOptions& options) {
  return StageRun(course, options).run();
}

}  // namespace moe::driver
