#include "driver/grade/prepare.h"

#include <cstdio>

#include "driver/build.h"
#include "driver/grade/usage.h"
#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

// Another number whenever results of before no longer count.
constexpr int kRecordVersion = 2;

std::string hex(std::uint64_t number) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// SplitMix64's finaliser, as the tests use it: no bit of the secret stays where it was.
std::uint64_t mixed(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

std::string limits_text(const Scheme& scheme) {
  char text[200];
  std::snprintf(text, sizeof text, "%d %g %g %g %g %d %g %s %d", scheme.full ? 1 : 0,
                scheme.build.seconds, scheme.build.memory_gib, scheme.stage_seconds,
                scheme.memory_gib, scheme.processes, scheme.performance_share,
                scheme.performance_shape.c_str(), scheme.cost_share > 0 ? 1 : 0);
  return text;
}

}  // namespace

std::optional<std::uint64_t> read_secret(const GradeOptions& options) {
  std::string text = options.secret;
  if (!options.secret_file.empty()) {
    text = driver::read_file(options.secret_file);
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    if (text.empty()) throw UsageError(options.secret_file + " is empty or cannot be read");
  }
  if (text.empty()) return std::nullopt;
  if (text.size() < 8) throw UsageError("a secret has at least 8 characters");
  return mixed(driver::hash_of(text));
}

void Preparation::build(const std::vector<const Stage*>& stages) {
  const std::string tree = backend_.name();
  const driver::Build configured = driver::configure_tree(course_, tree, backend_);
  std::vector<std::string> tests;
  std::vector<std::string> runners;
  for (const Stage* stage : stages) {
    const std::string stem = stage->stem;
    tests.push_back(stem + "_test");
    runners.insert(runners.end(), {stem + ".solution", stem + ".skeleton"});
  }
  if (backend_.cuda && scheme_.performance_share > 0) tests.emplace_back("bench_stage");
  driver::Build last = configured;
  if (last.done) last = driver::build_targets(course_, "host", tests, "grade.log");
  if (last.done) last = driver::build_targets(course_, tree, runners, "grade.log");
  if (last.done) return;
  throw std::runtime_error("the course does not build here; see " + last.log.string());
}

std::vector<CaseResult> Preparation::solution_cases(const Recipe& recipe,
                                                    const Workshop& workshop,
                                                    Examiner& examiner,
                                                    const std::string& key) {
  const Stage& stage = *recipe.stage;
  const fs::path kept = out_ / "state" / (std::string(stage.stem) + ".solution.json");
  const std::string text = driver::read_file(kept);
  try {
    if (!text.empty()) {
      const StageResult known = stage_from_text(text);
      if (known.key == key && known.mark == Mark::kPass) return known.cases;
    }
  } catch (const std::exception&) {
    // A damaged record is made anew.
  }
  const fs::path folder = out_ / "work" / (std::string(stage.stem) + ".solution");
  fs::create_directories(folder);
  // As if a student had handed it in: the whole way is tried before the first submission takes it.
  const BuiltRunner built =
      workshop.build(recipe, driver::read_file(course_.solution(stage)), folder, 0);
  StageResult result;
  result.mark = built.mark;
  result.sentence = built.sentence + " " + built.text;
  if (built.mark == Mark::kPass) {
    result = examiner.examine(stage, built.runner, "mine", {}, folder, 0);
  }
  if (result.mark != Mark::kPass) {
    throw std::runtime_error("our own solution of " + std::string(stage.id) +
                             " does not pass on this machine: " + word_of(result.mark) + ". " +
                             result.sentence);
  }
  result.key = key;
  fs::create_directories(kept.parent_path());
  write_durably(kept, to_text(result));
  return result.cases;
}

Prepared Preparation::run(const std::vector<const Stage*>& stages,
                          const Workshop& workshop,
                          Examiner& examiner,
                          std::uint64_t seed,
                          const std::function<void(const std::string&)>& show) {
  show("building the tests and the runners ...");
  build(stages);
  make_clean_tree(course_, clean_tree());
  Prepared prepared;
  const std::string about = std::to_string(kRecordVersion) + " " + limits_text(scheme_) + " " +
                            confinement_.word() + " " + backend_.name() + " " + hex(mixed(seed)) +
                            " ";
  std::string all_keys;
  for (const Stage* stage : stages) {
    prepared.recipes.push_back(find_recipe(course_, backend_.name(), *stage));
    confinement_.add_tools(prepared.recipes.back().tools);
    std::string harness;
    for (const fs::path& object : prepared.recipes.back().objects) {
      harness += hex(driver::hash_of(driver::read_file(object)));
    }
    harness += hex(driver::hash_of(driver::read_file(driver::test_path(course_, *stage))));
    prepared.keys[stage->stem] = about + stage->stem + " " + hex(driver::hash_of(harness)) + " ";
    all_keys += prepared.keys[stage->stem];
    show("our solution of " + std::string(stage->id) + " ...");
    prepared.expected[stage->stem] =
        solution_cases(prepared.recipes.back(), workshop, examiner,
                       hex(driver::hash_of(prepared.keys[stage->stem])));
  }
  if (scheme_.cost_share > 0) {
    show("cost cards of our solutions ...");
    prepared.cost_gate = std::make_shared<CostGate>(course_, scheme_, confinement_, workshop);
    prepared.cost_gate->prepare(stages, out_ / "work");
  }
  run_id_ = hex(driver::hash_of(all_keys));
  return prepared;
}

}  // namespace moe::grade
