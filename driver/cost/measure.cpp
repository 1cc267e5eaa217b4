#include "driver/cost/measure.h"

#include <exception>

#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr double kLimit = 120;

// Gone with this object.
struct PassingFile {
  explicit PassingFile(std::filesystem::path file) : path(std::move(file)) { remove(); }
  ~PassingFile() { remove(); }
  PassingFile(const PassingFile&) = delete;
  PassingFile& operator=(const PassingFile&) = delete;

  void remove() const {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }

  std::filesystem::path path;
};

// What the first call counted that started a kernel, or "".
std::string first_counts(const std::string& all) {
  for (const std::string& line : split_lines(all)) {
    if (line.find("\"function\"") != std::string::npos) return line;
  }
  return {};
}

}  // namespace

std::vector<std::string> cost_environment(const std::filesystem::path& counts,
                                          const CostCase& one,
                                          std::size_t l2_bytes) {
  const std::size_t bytes = one.cache_bytes != 0 ? one.cache_bytes : l2_bytes;
  return {"EMULATOR_WATCH=cost:" + counts.string(), "EMULATOR_COST_CACHE=" + std::to_string(bytes)};
}

CostRun measure_cost(const CostProgram& program,
                     const CostCase& one,
                     std::size_t l2_bytes,
                     const Watcher& watcher) {
  const PassingFile counts(program.counts);
  const PassingFile report(program.report);
  Command command;
  command.arguments = {
      program.test, "--runner",  program.runner, "--side", program.side, "--backend", "cpu",
      "--report",   report.path, "--case",       one.name, "--seed",     "1"};
  command.environment = cost_environment(counts.path, one, l2_bytes);
  command.limit_s = kLimit;
  const Outcome outcome = run_process(command, watcher);
  const Report judged = parse_report(read_file(report.path));
  CostRun run;
  run.verdict = verdict_of(judged);
  if (!judged.cases.empty()) {
    run.shape = judged.cases.front().shape;
    run.sentence = judged.cases.front().sentence;
  }
  if (run.verdict == Verdict::kTodo) {
    run.trouble = "the case reaches blanks";
    return run;
  }
  const std::string raw = first_counts(read_file(counts.path));
  if (raw.empty()) {
    run.trouble =
        outcome.timed_out ? "the traced run took too long" : "the traced run started no kernel";
    return run;
  }
  try {
    Symbols symbols;
    if (!program.binary.empty()) {
      symbols = resolve_symbols(program.binary, program.root, counters_of(raw));
    }
    run.card = parse_cost(raw, symbols);
  } catch (const std::exception& error) {
    run.trouble = std::string("the counts can't be read: ") + error.what();
  }
  return run;
}

}  // namespace moe::driver
