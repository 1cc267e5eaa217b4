// `drill layer`: the whole layer, from logits to output, of any mix of your stages and ours.
#include <map>
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

// "m1=solution,m2=mine" -> side by stage id; false (and a message) where it makes no sense.
bool parse_with(const std::string& with, std::map<std::string, std::string>& sides) {
  size_t begin = 0;
  while (begin < with.size()) {
    size_t end = with.find(',', begin);
    if (end == std::string::npos) end = with.size();
    const std::string part = with.substr(begin, end - begin);
    const size_t equals = part.find('=');
    const std::string id = part.substr(0, equals);
    const std::string side = equals == std::string::npos ? "" : part.substr(equals + 1);
    if (sides.count(id) == 0 || (side != "mine" && side != "solution")) {
      say("drill layer: --with takes stage=mine or stage=solution of the stages in the layer, "
          "not " +
          part + "\n");
      return false;
    }
    sides[id] = side;
    begin = end + 1;
  }
  return true;
}

// Yours where the file that is there now has passed, else ours.
std::map<std::string, std::string> default_sides(const Course& course,
                                                 const std::vector<Stage>& stages) {
  std::map<std::string, std::string> sides;
  for (const Stage& stage : stages) {
    sides[stage.id] = standing_of(course, stage).passed ? "mine" : "solution";
  }
  return sides;
}

}  // namespace

int run_layer(const Course& course, const LayerOptions& options) {
  const std::vector<Stage> stages = stages_up_to(options.last);
  if (stages.empty()) {
    say("drill layer: --last is m3 or m4, the stages that have a moe_layer\n");
    return static_cast<int>(Verdict::kUsage);
  }
  std::map<std::string, std::string> sides = default_sides(course, stages);
  if (options.solution) {
    for (auto& [id, side] : sides) side = "solution";
  }
  if (!parse_with(options.with, sides)) return static_cast<int>(Verdict::kUsage);
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
