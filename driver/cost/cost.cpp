// `drill cost mN`: what the kernels of a stage ask of the hardware, counted on the emulator.
#include <unistd.h>

#include "driver/build.h"
#include "driver/cost/measure.h"
#include "driver/ground.h"
#include "driver/terminal.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

int usage(const std::string& text) {
  say(wrapped("drill cost: ", text));
  return static_cast<int>(Verdict::kUsage);
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

// One `drill cost`, from the options to the exit code.
class CostCommand {
 public:
  CostCommand(const Course& course, const CostOptions& options)
      : course_(course), options_(options), stage_(*find_stage(options.stage)) {}

  int run();

 private:
  bool build(const std::string& side);
  CostRun measure(const std::string& side) const;
  int show(const std::string& side, const CostRun& run);
  int compare(const CostRun& run);

  const Course& course_;
  const CostOptions& options_;
  Stage stage_;
  const CostCase* case_ = nullptr;
  const GpuSheet* gpu_ = nullptr;
  int failure_ = 0;
};

int CostCommand::run() {
  if (const std::string trouble = ground_trouble(course_); !trouble.empty()) {
    say(wrapped("drill: ", trouble + "."));
    return static_cast<int>(Verdict::kFault);
  }
  case_ = find_cost_case(stage_.id, options_.case_name);
  if (case_ == nullptr) {
    const std::vector<std::string> names = cost_case_names(stage_.id);
    return usage(names.empty() ? std::string(stage_.id) + " has no case for a cost card yet."
                               : "cards of " + std::string(stage_.id) + " are taken of " +
                                     joined(names) + ".");
  }
  gpu_ = find_gpu_sheet(options_.gpu_name);
  if (gpu_ == nullptr) {
    return usage("no data sheet of " + shell_quoted(options_.gpu_name) + "; there are " +
                 gpu_sheet_names() + ".");
  }
  if ((options_.solution || !options_.versus.empty()) && !has_solution(course_, stage_)) {
    say(wrapped("SKIP   ", "this copy has the reference as machine code, which can't be traced."));
    return static_cast<int>(Verdict::kSkip);
  }
  restore_missing_files(course_);
  const std::string side = options_.solution ? "solution" : "mine";
  const bool compares = !options_.versus.empty() && !options_.solution;
  if (!build(side) || (compares && !build("solution"))) return failure_;
  const CostRun run = measure(side);
  const int code = show(side, run);
  return compares && run.trouble.empty() ? compare(run) : code;
}

bool CostCommand::build(const std::string& side) {
  const Build configured = configure_tree(course_, kTracedTree, {});
  if (!configured.done) {
    say(configured.compiler_text);
    say(wrapped("FAULT  ", std::string("build/") + kTracedTree +
                               " cannot be configured; `drill doctor` may know why."));
    failure_ = static_cast<int>(Verdict::kFault);
    return false;
  }
  if (!std::filesystem::exists(runner_path(course_, kTracedTree, stage_, side)) && !options_.json) {
    say("building the traced emulator (once, up to a minute) ...\n");
  }
  const std::string test = std::string(stage_.stem) + "_test";
  Build done = build_targets(course_, "host", {test}, test + ".log");
  if (done.done) done = build_runner(course_, kTracedTree, stage_, side);
  if (done.done) return true;
  say(done.compiler_text);
  say(wrapped("BUILD  ", source_name(stage_, side) + " does not compile; `drill " +
                             std::string(stage_.id) + "` says more."));
  failure_ = static_cast<int>(Verdict::kBuild);
  return false;
}

CostRun CostCommand::measure(const std::string& side) const {
  StatusLine status;
  status.show("counting " + std::string(case_->name) + " of " + side);
  CostProgram program;
  program.test = test_path(course_, stage_);
  program.runner = runner_path(course_, kTracedTree, stage_, side);
  program.binary = program.runner;
  program.root = course_.root;
  const std::string unique = std::string(stage_.stem) + ".cost." + std::to_string(getpid());
  program.counts = course_.tree(kTracedTree) / (unique + ".json");
  program.report = course_.tree(kTracedTree) / (unique + ".report");
  program.side = side;
  return measure_cost(program, *case_, gpu_->l2_bytes);
}

int CostCommand::show(const std::string& side, const CostRun& run) {
  if (!run.trouble.empty()) {
    const bool todo = run.verdict == Verdict::kTodo;
    say(wrapped(todo ? "TODO   " : "cost   ",
                todo ? source_name(stage_, side) + " has blanks that this case reaches."
                     : run.trouble + "; `drill " + std::string(stage_.id) + "` says more."));
    return static_cast<int>(run.verdict == Verdict::kPass ? Verdict::kFault : run.verdict);
  }
  if (options_.json) {
    say(cost_json(run.card, *case_, *gpu_, side));
    return static_cast<int>(run.verdict);
  }
  say("cost     " + source_name(stage_, side) + ", " + case_->name + ": " + run.shape + "\n\n");
  say(cost_text(run.card, *case_, *gpu_, course_.root));
  if (run.verdict != Verdict::kPass) {
    say("\n" + wrapped("note     ", std::string("the case says ") + word_of(run.verdict) +
                                        (run.sentence.empty() ? "" : ": " + run.sentence) +
                                        " The counts are those of what ran."));
  }
  return static_cast<int>(run.verdict);
}

int CostCommand::compare(const CostRun& run) {
  const CostRun reference = measure("solution");
  if (!reference.trouble.empty()) return static_cast<int>(Verdict::kFault);
  if (options_.json) {
    say(cost_json(reference.card, *case_, *gpu_, "solution"));
  } else {
    say("\nbeside the reference\n" + cost_comparison(run.card, reference.card, *case_));
  }
  return static_cast<int>(run.verdict);
}

}  // namespace

int run_cost(const Course& course, const CostOptions& options) {
  return CostCommand(course, options).run();
}

}  // namespace moe::driver
