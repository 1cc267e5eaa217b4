#include "driver/grade/cost_gate.h"

#include <stdexcept>

#include "driver/build.h"
#include "driver/grade/examine.h"
#include "driver/grade/guard.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCacheBytes = std::size_t{50} * 1000 * 1000;  // an H200's L2
constexpr std::uint64_t kCountsBytes = 16u << 20;

CostFigures figures_of(const driver::CostRun& run, const driver::CostCase& one) {
  CostFigures figures;
  if (!run.trouble.empty() || run.verdict != driver::Verdict::kPass) {
    figures.problem = run.trouble.empty() ? "the counted case does not pass" : run.trouble;
    return figures;
  }
  figures.taken = true;
  figures.sectors_per_request = run.card.sectors_per_request();
  figures.bank_conflicts = static_cast<double>(run.card.bank_conflicts());
  figures.bytes_ratio = run.card.bytes_ratio(one);
  return figures;
}

}  // namespace

void CostGate::prepare(const std::vector<const Stage*>& stages, const fs::path& folder) {
  std::vector<std::string> targets;
  for (const Stage* stage : stages) {
    if (driver::find_cost_case(stage->id) != nullptr) {
      targets.push_back(std::string(stage->stem) + ".skeleton");
    }
  }
  driver::Build build = driver::configure_tree(course_, driver::kTracedTree, {});
  if (build.done) {
    build = driver::build_targets(course_, driver::kTracedTree, targets, "grade.log");
  }
  if (!build.done) {
    throw std::runtime_error("the traced emulator does not build here; see " + build.log.string());
  }
  for (const Stage* stage : stages) {
    if (driver::find_cost_case(stage->id) == nullptr) continue;
    recipes_[stage->stem] = find_recipe(course_, driver::kTracedTree, *stage);
    confinement_.add_tools(recipes_[stage->stem].tools);
    const fs::path own = folder / (std::string(stage->stem) + ".cost");
    const CostFigures figures =
        measure(*stage, driver::read_file(course_.solution(*stage)), own, 0);
    if (!figures.taken) {
      throw std::runtime_error("no cost card of our own solution of " + std::string(stage->id) +
                               ": " + figures.problem);
    }
    references_[stage->stem] = figures;
  }
}

void CostGate::take(const Stage& stage,
                    const std::string& source,
                    const fs::path& folder,
                    int worker,
                    StageResult& result) const {
  const auto reference = references_.find(stage.stem);
  if (reference == references_.end() || result.mark != Mark::kPass) return;
  result.reference_cost = reference->second;
  result.cost = measure(stage, source, folder / "cost", worker);
}

CostFigures CostGate::measure(const Stage& stage,
                              const std::string& source,
                              const fs::path& folder,
                              int worker) const {
  CostFigures figures;
  fs::create_directories(folder);
  const BuiltRunner built = workshop_.build(recipes_.at(stage.stem), source, folder, worker);
  if (built.mark != Mark::kPass) {
    figures.problem = "the traced runner cannot be built: " + built.sentence;
    return figures;
  }
  const driver::CostCase& one = *driver::find_cost_case(stage.id);
  const fs::path written = folder / "counts";
  fs::create_directories(written);
  confinement_.hand_over(written, worker);
  const fs::path counts = written / "counts.json";
  Room room;
  room.readable = {built.runner};
  room.writable = {written};
  room.environment = driver::cost_environment(counts, one, kCacheBytes);
  Limits limits;
  limits.file_bytes = kCountsBytes;
  limits.cpu_seconds = static_cast<int>(scheme_.stage_seconds);

  driver::CostProgram program;
  program.test = driver::test_path(course_, stage);
  program.runner = write_launcher(folder, confinement_.wrap({built.runner}, room, limits, worker));
  program.counts = counts;
  program.report = folder / "report.jsonl";
  program.side = "mine";
  Guard guard(static_cast<std::uint64_t>(scheme_.memory_gib * (1u << 30)), scheme_.processes);
  driver::Watcher watcher;
  watcher.on_start = [&guard](pid_t process) { guard.watch(process); };
  watcher.on_tick = [&guard] { guard.look(); };
  const driver::CostRun run = driver::measure_cost(program, one, kCacheBytes, watcher);
  confinement_.sweep(worker);
  figures = figures_of(run, one);
  if (guard.memory_exceeded() || guard.processes_exceeded()) {
    figures = {};
    figures.problem = "it takes more memory or processes than it may";
  }
  return figures;
}

}  // namespace moe::grade
