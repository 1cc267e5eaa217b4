// `drill layer`: the whole layer, from logits to output, of any mix of your stages and ours.
#include "driver/layer.h"

#include <algorithm>
#include <set>

#include "driver/stage_run.h"
#include "driver/state.h"
#include "driver/terminal.h"
#include "driver/transcript.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

constexpr Stage kLayer = {"layer", "layer", "the whole layer", ""};

// The stages up to `last`, in order; empty when `last` has no layer.
std::vector<Stage> stages_up_to(const std::string& last) {
  std::vector<Stage> stages;
  for (const Stage& stage : kStages) {
    stages.push_back(stage);
    if (stage.id == last) return last == "m3" || last == "m4" ? stages : std::vector<Stage>();
  }
  return {};
}

}  // namespace

std::map<std::string, std::string> layer_sides(const LayerOptions& options,
                                               const std::vector<Stage>& stages,
                                               const std::function<bool(const Stage&)>& passed,
                                               std::string& problem) {
  std::map<std::string, std::string> sides;
  for (const Stage& stage : stages) {
    sides[stage.id] = !options.solution && passed(stage) ? "mine" : "solution";
  }
  const std::string& with = options.with;
  for (size_t begin = 0, end = 0; begin < with.size(); begin = end + 1) {
    end = std::min(with.find(',', begin), with.size());
    const std::string part = with.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const std::string id = part.substr(0, equals);
    const std::string side = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (sides.count(id) == 0 || (side != "mine" && side != "solution")) {
      problem = "--with takes stage=mine or stage=solution of the stages in the layer, not " + part;
      break;
    }
    sides[id] = side;
  }
  return sides;
}

int run_layer(const Course& course, const LayerOptions& options) {
  const std::vector<Stage> stages = stages_up_to(options.last);
  if (stages.empty()) {
    say("drill layer: --last is m3 or m4, the stages that have a moe_layer\n");
    return static_cast<int>(Verdict::kUsage);
  }
  std::string problem;
  const auto passed = [&](const Stage& stage) { return standing_of(course, stage).passed; };
  std::map<std::string, std::string> sides = layer_sides(options, stages, passed, problem);
  if (!problem.empty()) {
    say("drill layer: " + problem + "\n");
    return static_cast<int>(Verdict::kUsage);
  }
  std::string letters;
  std::string whose;
  for (const Stage& stage : stages) {
    letters += sides[stage.id][0];
    whose += "  " + std::string(stage.id) + " " + (sides[stage.id] == "mine" ? "yours" : "ours");
  }

  const Wish wish = options.cpu ? Wish::kCpu : options.gpu ? Wish::kGpu : Wish::kAny;
  const Backend backend = choose_backend(wish);
  if (wish == Wish::kGpu && !backend.cuda) {
    say("SKIP   layer --gpu: " + backend.refusal + ". Nothing was run.\n");
    return static_cast<int>(Verdict::kSkip);
  }
  // A stage asks for all that the stages below it ask for.
  const std::string refusal =
      refuse_backend(backend, stages.back().capability, "drill layer --last " + options.last);
  if (!refusal.empty()) {
    say(wrapped("SKIP   ", "layer: " + refusal));
    return static_cast<int>(Verdict::kSkip);
  }
  say("layer  the whole layer of " + options.last + whose + "   " + backend.phrase + "\n");
  const std::string tree = backend.name();
  const std::string side = options.last + "." + letters;
  const Build tests = build_targets(course, "host", {"layer_test"}, "layer_test.log");
  const Build configured = tests.done ? configure_tree(course, tree, backend) : tests;
  const Build built =
      configured.done ? build_targets(course, tree, {"layer." + side}, "layer.log") : configured;
  if (!built.done) {
    say(built.compiler_text + "BUILD  the layer cannot be built; see " + built.log.string() + "\n");
    return static_cast<int>(Verdict::kBuild);
  }
  TestOptions test_options;
  test_options.side = side;
  test_options.full = options.full;
  test_options.case_name = options.case_name;
  test_options.capability = stages.back().capability;
  const TestRun run = run_tests(course, kLayer, backend, test_options, [](const CaseRecord&) {});
  if (run.verdict == Verdict::kFault || run.verdict == Verdict::kUsage) {
    say("drill layer: " + run.fault + "\n");
    return static_cast<int>(run.verdict);
  }
  Scene scene;
  scene.stage = kLayer;
  scene.side = "solution";
  scene.again = "drill layer --last " + options.last;
  scene.emulator = !backend.cuda;
  say(test_text(run.report, run.outcome.seconds));
  say(output_text(run.report, scene));
  if (run.verdict == Verdict::kTodo) {
    std::set<std::string> open;
    for (const CaseRecord& one : run.report.cases) open.insert(one.todo.begin(), one.todo.end());
    const std::vector<std::string> names(open.begin(), open.end());
    say(wrapped("TODO   ", "the layer reaches blanks of yours: " + name_list(names, 200)));
    return static_cast<int>(run.verdict);
  }
  say(verdict_text(run.report, scene, Paint::for_stdout()));
  return static_cast<int>(run.verdict);
}

}  // namespace moe::driver
