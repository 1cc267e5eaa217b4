// `drill check mN`: the stage under the tools that find what a right result can hide. On the
// emulator two builds of the runner, on a GPU compute-sanitizer; one list of findings.
#include <algorithm>

#include "driver/build.h"
#include "driver/compute_sanitizer.h"
#include "driver/finding.h"
#include "driver/ground.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/stage_run.h"
#include "driver/transcript.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr int kCaseLimitSeconds = 60;
constexpr int kLargestKib = 512;  // of a case, unless it is asked for

struct Tool {
  const char* name;
  const char* tree;
  const char* looks_for;
  std::vector<std::string> environment;
};

// In the order in which their findings are told: an order that is missing explains more than a
// stray address.
const std::vector<Tool>& emulator_tools() {
  static const std::vector<Tool> kTools{
      {"order", "cpu-traced", "races, unwritten memory, waits, barriers", {"EMULATOR_WATCH=check"}},
      // The emulator's report has the line; AddressSanitizer's own frames take long to look up.
      {"memory",
       "cpu-asan",
       "AddressSanitizer, UBSan",
       {"ASAN_OPTIONS=symbolize=0", "UBSAN_OPTIONS=symbolize=0"}},
  };
  return kTools;
}

TestOptions options_for(const Tool& tool, const std::string& side, const std::string& case_name) {
  TestOptions options;
  options.side = side;
  options.tree = tool.tree;
  options.environment = tool.environment;
  options.case_name = case_name;
  options.seed = 1;  // what it finds is to be found again
  options.case_limit_s = kCaseLimitSeconds;
  return options;
}

// What a failed case says: a report's findings, or that it died without one.
std::vector<Finding> findings_of_case(const CaseRecord& one, const std::string& tool) {
  std::vector<Finding> found = findings_of_fault(one.fault);
  const bool died = one.state == CaseState::kCrash || one.state == CaseState::kHang;
  if (one.fault.empty() && died) {
    Finding unexplained;
    unexplained.kind = one.state == CaseState::kHang ? "hang" : "crash";
    unexplained.sentence = one.sentence;
    found.push_back(unexplained);
  }
  for (Finding& finding : found) {
    finding.cases = {one.name};
    finding.tools = {tool};
  }
  return found;
}

class Check {
 public:
  Check(const Course& course, const CheckOptions& options)
      : course_(course), options_(options), paint_(Paint::for_stdout()) {
    scene_.stage = *find_stage(options.stage);
    scene_.side = options.solution ? "solution" : "mine";
    scene_.again = std::string("drill check ") + scene_.stage.id +
                   (options.solution ? " --solution" : "") + (options.cpu ? " --cpu" : "") +
                   (options.gpu ? " --gpu" : "");
  }

  int run();

 private:
  int finish(Verdict verdict, const std::string& text) const;
  int build(const std::string& tree, double& seconds);
  bool build_all(const std::vector<std::string>& trees, int& code);
  // Runs the tests with one tool; false when they could not be run, and says why.
  bool test(const std::string& tool, const TestOptions& options, TestRun& run, int& code);
  bool run_emulator(int& code);
  bool run_sanitizer(int& code);
  void take(const std::string& tool, const Report& report);
  int judge() const;

  const Course& course_;
  const CheckOptions& options_;
  Paint paint_;
  Scene scene_;
  Backend backend_;
  std::vector<Finding> findings_;
  std::vector<std::string> wrong_cases_;
  std::vector<std::string> todo_;
  std::vector<std::string> tools_;
  std::size_t num_cases_ = 0;
};

int Check::finish(Verdict verdict, const std::string& text) const {
  const std::string word = word_of(verdict);
  const std::string lines = wrapped(padded(word, 7), text);
  const std::string colored = verdict == Verdict::kPass ? paint_.good(word)
                              : verdict == Verdict::kTodo || verdict == Verdict::kSkip
                                  ? paint_.open(word)
                                  : paint_.bad(word);
  say(colored + lines.substr(word.size()));
  return static_cast<int>(verdict);
}

int Check::run() {
  if (const std::string trouble = ground_trouble(course_); !trouble.empty()) {
    say(wrapped("drill: ", trouble + "."));
    return static_cast<int>(Verdict::kFault);
  }
  const std::string file = source_name(scene_.stage, scene_.side);
  scene_.source = read_file(course_.root / file);
  const bool as_machine_code = options_.solution && !has_solution(course_, scene_.stage);
  if (as_machine_code) {
    return finish(Verdict::kSkip, "the references are machine code here, which tells no lines.");
  }
  if (scene_.source.empty()) {
    say("drill: " + file + " is missing\n");
    return static_cast<int>(Verdict::kUsage);
  }
  const Wish wish = options_.cpu ? Wish::kCpu : options_.gpu ? Wish::kGpu : Wish::kAny;
  backend_ = choose_backend(wish);
  scene_.emulator = !backend_.cuda;
  const std::string id = scene_.stage.id;
  if (wish == Wish::kGpu && !backend_.cuda) {
    return finish(Verdict::kSkip, id + " --gpu: " + backend_.refusal + ". Nothing was run.");
  }
  const std::string refusal =
      refuse_backend(backend_, scene_.stage.capability, "drill check " + id);
  if (!refusal.empty()) return finish(Verdict::kSkip, id + ": " + refusal);
  say(header_text(scene_, "check on the " + backend_.phrase, paint_));
  int code = 0;
  if (!(backend_.cuda ? run_sanitizer(code) : run_emulator(code))) return code;
  return judge();
}

// Builds the runner in a tree; 0, or the exit code of the failure, which it has told.
int Check::build(const std::string& tree, double& seconds) {
  const std::string target = std::string(scene_.stage.stem) + "_test";
  Build build = tree == "host" ? build_targets(course_, "host", {target}, target + ".log")
                               : configure_tree(course_, tree, backend_);
  seconds += build.seconds;
  if (build.done && tree != "host") {
    build = build_runner(course_, tree, scene_.stage, scene_.side);
    seconds += build.seconds;
  }
  if (build.done) return 0;
  const std::string log = build.log.lexically_relative(course_.root).string();
  const std::string file = source_name(scene_.stage, scene_.side);
  const bool theirs = build.compiler_text.find(file) != std::string::npos;
  say(build.compiler_text + "\n");
  return finish(theirs ? Verdict::kBuild : Verdict::kFault,
                theirs ? std::string(scene_.stage.id) + "   full log: " + log
                       : "build/" + tree + " cannot be built; see " + log + ".");
}

bool Check::build_all(const std::vector<std::string>& trees, int& code) {
  for (const std::string& tree : trees) {
    if (tree == "host" || std::filesystem::exists(course_.tree(tree) / "build.ninja")) continue;
    say("building for the checks (once, about a minute) ...\n");
    break;
  }
  double seconds = 0;
  code = build("host", seconds);
  for (const std::string& tree : trees) {
    if (code == 0) code = build(tree, seconds);
  }
  if (code == 0) say("build  " + seconds_text(seconds) + "\n");
  return code == 0;
}

bool Check::test(const std::string& tool, const TestOptions& options, TestRun& run, int& code) {
  StatusLine status;
  std::size_t judged = 0;
  run = run_tests(course_, scene_.stage, backend_, options, [&](const CaseRecord& one) {
    status.show(tool + "  " + counted(++judged, "case") + "  " + one.name);
  });
  status.clear();
  if (run.verdict == Verdict::kUsage) {
    say("drill: " + run.fault + "\n");
    code = static_cast<int>(run.verdict);
    return false;
  }
  if (run.verdict == Verdict::kFault) {
    code = finish(run.verdict, run.fault + ". This is a fault of the course, not of your file. " +
                                   "log " + run.log.lexically_relative(course_.root).string());
    return false;
  }
  tools_.push_back(tool);
  return true;
}

bool Check::run_emulator(int& code) {
  std::vector<std::string> trees;
  for (const Tool& tool : emulator_tools()) trees.emplace_back(tool.tree);
  if (!build_all(trees, code)) return false;
  for (const Tool& tool : emulator_tools()) {
    TestOptions options = options_for(tool, scene_.side, options_.case_name);
    if (options_.case_name.empty()) options.largest_kib = kLargestKib;
    TestRun run;
    if (!test(tool.name, options, run, code)) return false;
    const std::size_t ran = run.report.cases.size() - run.report.count(CaseState::kSkip) -
                            run.report.count(CaseState::kNotRun);
    say(padded(tool.name, 8) + counted(ran, "case") + "   " + seconds_text(run.outcome.seconds) +
        "\n");
    tools_.back() += std::string(" (") + tool.looks_for + ")";
    take(tool.name, run.report);
  }
  return true;
}

bool Check::run_sanitizer(int& code) {
  const std::filesystem::path sanitizer = find_compute_sanitizer(backend_.nvcc);
  if (sanitizer.empty()) {
    code =
        finish(Verdict::kSkip,
               "there is no compute-sanitizer; it comes with the CUDA Toolkit. On the emulator: " +
                   scene_.again + " --cpu");
    return false;
  }
  const std::string tree = backend_.name();
  if (!build_all({tree}, code)) return false;
  const std::filesystem::path folder = course_.tree(tree) / "check";
  const std::filesystem::path runner = runner_path(course_, tree, scene_.stage, scene_.side);
  for (const std::string tool : kSanitizerTools) {
    const std::filesystem::path log = folder / (tool + ".txt");
    TestOptions options;
    options.side = scene_.side;
    options.runner = folder / (tool + ".sh");
    options.case_name = options_.case_name.empty() ? "tiny" : options_.case_name;
    options.seed = 1;
    options.case_limit_s = 2 * kCaseLimitSeconds;
    if (!write_sanitizer_script(options.runner, sanitizer, tool, log, runner)) {
      code = finish(Verdict::kFault, folder.string() + " cannot be written.");
      return false;
    }
    TestRun run;
    if (!test(tool, options, run, code)) return false;
    const std::string report = read_file(log);
    if (!is_complete_report(report)) {
      code = finish(Verdict::kFault, tool + " left no summary; see " + log.string() + ".");
      return false;
    }
    say(padded(tool, 11) + counted(run.report.cases.size(), "case") + "   " +
        seconds_text(run.outcome.seconds) + "\n");
    for (Finding finding : findings_of_sanitizer(report, course_.root)) {
      finding.tools = {tool};
      add_finding(findings_, finding);
    }
    take("", run.report);
  }
  return true;
}

// Faults are findings; `tool` "" leaves them to the tool's own report.
void Check::take(const std::string& tool, const Report& report) {
  num_cases_ = std::max(num_cases_, report.cases.size() - report.count(CaseState::kSkip));
  for (const CaseRecord& one : report.cases) {
    for (const std::string& blank : one.todo) {
      if (std::find(todo_.begin(), todo_.end(), blank) == todo_.end()) todo_.push_back(blank);
    }
    const bool failed = one.state == CaseState::kWrong || one.state == CaseState::kCrash ||
                        one.state == CaseState::kHang;
    if (!failed) continue;
    if (one.fault.empty() && one.state == CaseState::kWrong) wrong_cases_.push_back(one.name);
    if (tool.empty()) continue;
    for (const Finding& finding : findings_of_case(one, tool)) add_finding(findings_, finding);
  }
}

int Check::judge() const {
  const std::string id = scene_.stage.id;
  const std::string note =
      read_file(course_.root / "content" / (std::string(scene_.stage.stem) + ".md"));
  std::string ran;
  for (const std::string& tool : tools_) ran += (ran.empty() ? "" : ", ") + tool;
  if (!findings_.empty()) {
    const int code =
        finish(Verdict::kWrong, id + " check: " + counted(findings_.size(), "finding"));
    say(findings_text(findings_, scene_, note, paint_));
    return code;
  }
  if (!todo_.empty()) {
    return finish(Verdict::kTodo, id + " check: reaches blanks, and can't go on: " +
                                      name_list(todo_, std::string::npos));
  }
  const int code =
      finish(Verdict::kPass, counted(num_cases_, "case") + ", nothing found by " + ran);
  if (!wrong_cases_.empty()) {
    say(wrapped("  note    ", counted(wrong_cases_.size(), "case") +
                                  " gave wrong values, which is not what check looks at: drill " +
                                  id + (options_.solution ? " --solution" : "")));
  } else if (scene_.emulator) {
    say("  note    the emulator proves no memory model; on a GPU check runs compute-sanitizer\n");
  }
  return code;
}

}  // namespace

int check_stage(const Course& course, const CheckOptions& options) {
  return Check(course, options).run();
}

std::string replay_text(const Course& course,
                        const Scene& scene,
                        const Backend& backend,
                        const CaseRecord& failed) {
  const std::string command = std::string("drill check ") + scene.stage.id +
                              (scene.side == "solution" ? " --solution" : "") +
                              (backend.cuda ? " --cpu" : "") + " --case " +
                              shell_quoted(failed.name);
  std::string advice = "\n" + wrapped("  locate  ", command);
  std::vector<Finding> findings;
  StatusLine status;
  for (const Tool& tool : emulator_tools()) {
    // A learner who never used check is not made to wait for its builds.
    const std::filesystem::path tree = course.tree(tool.tree);
    if (backend.cuda || !std::filesystem::exists(tree / "emulator/libemulator.a")) return advice;
    status.show("looking closer at " + failed.name + " ...");
    if (!build_runner(course, tool.tree, scene.stage, scene.side).done) return advice;
    TestOptions options = options_for(tool, scene.side, failed.name);
    if (failed.seed) options.seed = failed.seed;
    const TestRun run = run_tests(course, scene.stage, backend, options, [](const CaseRecord&) {});
    for (const CaseRecord& one : run.report.cases) {
      for (const Finding& finding : findings_of_case(one, tool.name)) {
        add_finding(findings, finding);
      }
    }
  }
  status.clear();
  if (findings.empty()) return advice;
  Scene again = scene;
  again.again = command.substr(0, command.find(" --case"));
  const std::string file = "content/" + std::string(scene.stage.stem) + ".md";
  return "\n  check   " + failed.name + " once more, alone\n" +
         findings_text(findings, again, read_file(course.root / file), Paint::for_stdout());
}

}  // namespace moe::driver
