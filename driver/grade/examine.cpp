#include "driver/grade/examine.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/build.h"
#include "driver/fault.h"
#include "driver/grade/guard.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;
using driver::CaseState;

constexpr int kFaultRetries = 2;
constexpr int kOddRetries = 1;  // of crashes and hangs: a busy machine may have caused them
constexpr std::uint64_t kRunnerFileBytes = 16u << 20;
constexpr std::size_t kKeptOutput = 4 * 1024;
constexpr double kBenchSeconds = 600;

CaseResult case_of(const driver::CaseRecord& record) {
  CaseResult one;
  one.name = record.name;
  one.state = record.state;
  one.code = record.code;
  one.sentence = record.sentence;
  one.region = record.region;
  one.note = record.note;
  one.step = record.step;
  one.shape = record.shape;
  one.fault = record.fault;
  one.evidence = record.evidence;
  one.seconds = record.seconds;
  return one;
}

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

// The case to explain a mark with: the one that the run as a whole settled on, else the first.
CaseState state_behind(Mark mark) {
  switch (mark) {
    case Mark::kCrash:
      return CaseState::kCrash;
    case Mark::kHang:
      return CaseState::kHang;
    case Mark::kTodo:
      return CaseState::kTodo;
    default:
      return CaseState::kWrong;
  }
}

void explain(const driver::Report& report, StageResult& result) {
  const driver::CaseRecord* shown = report.first(state_behind(result.mark));
  if (shown == nullptr) return;
  result.code = shown->code;
  result.sentence = shown->sentence;
  if (result.mark == Mark::kTodo) {
    result.sentence = "not written yet:";
    for (const std::string& region : shown->todo) result.sentence += " " + region;
  }
}

// Holds the cases against the exit code, as `drill mN` does; "" or what does not fit.
std::string contradiction(const driver::Report& report, const driver::Outcome& outcome) {
  if (outcome.signal != 0) {
    return "the test program was ended by signal " + std::to_string(outcome.signal);
  }
  if (!report.ended) {
    return "the test program ended without a verdict, with exit code " +
           std::to_string(outcome.exit_code);
  }
  if (report.damaged_lines > 0) return "the test program wrote a damaged report";
  if (outcome.exit_code != static_cast<int>(driver::verdict_of(report))) {
    return std::string("the cases say ") + driver::word_of(driver::verdict_of(report)) +
           ", but the test program's exit code is " + std::to_string(outcome.exit_code);
  }
  return {};
}

// Every case that our solution is asked for, and no other; a child that died before its hello has
// none.
bool same_cases(const StageResult& result, const std::vector<CaseResult>& expected) {
  if (result.cases.size() < expected.size()) return false;
  std::map<std::string, int> names;
  for (const CaseResult& one : result.cases) ++names[one.name];
  return std::all_of(expected.begin(), expected.end(),
                     [&](const CaseResult& one) { return names[one.name] == 1; });
}

}  // namespace

fs::path write_launcher(const fs::path& folder, const std::vector<std::string>& command) {
  fs::path file = folder / "launch.sh";
  std::string text = "#!/bin/sh\nexec";
  for (const std::string& word : command) text += " " + driver::shell_quoted(word);
  driver::write_program(file, text + "\n");
  return file;
}

Timing timing_of(const std::string& bench_report) {
  Timing timing;
  int mine = 0;
  int reference = 0;
  for (const std::string& line : driver::split_lines(bench_report)) {
    const nlohmann::json record = nlohmann::json::parse(line, nullptr, false);
    if (record.is_discarded() || !record.is_object()) continue;
    const std::string side = record.value("side", "");
    const double us = record.value("median_us", 0.0);
    const bool right = record.value("verdict", "") == "right";
    if (side == "mine" && (!right || !(us > 0))) timing.problem = "a timed output was wrong";
    if (side == "solution" && (!right || !(us > 0))) timing.problem = "the reference failed";
    if (side == "mine") {
      timing.mine_us += us;
      ++mine;
    } else if (side == "solution") {
      timing.reference_us += us;
      ++reference;
    }
  }
  if (mine == 0 || mine != reference) timing.problem = "it could not be timed";
  return timing;
}

StageResult Examiner::run_once(const Stage& stage,
                               const fs::path& launcher,
                               const std::string& side,
                               const fs::path& folder,
                               int worker) {
  const fs::path report_file = folder / "report.jsonl";
  std::error_code ignored;
  fs::remove(report_file, ignored);
  driver::Command command;
  // Even where the grader itself is killed, nothing of it goes on.
  command.arguments = {"setpriv",   "--pdeathsig",   "KILL",     driver::test_path(course_, stage),
                       "--runner",  launcher,        "--side",   side,
                       "--backend", backend_.name(), "--report", report_file};
  if (scheme_.full) command.arguments.emplace_back("--full");
  if (secret_) command.environment = {"DRILL_SECRET=" + std::to_string(*secret_)};
  command.folder = folder;
  command.limit_s = scheme_.stage_seconds;
  command.keep_bytes = kKeptOutput;
  Guard guard(static_cast<std::uint64_t>(scheme_.memory_gib * (1u << 30)), scheme_.processes);
  driver::Watcher watcher;
  watcher.on_start = [&guard](pid_t process) { guard.watch(process); };
  watcher.on_tick = [&guard] { guard.look(); };
  const driver::Outcome outcome = driver::run_process(command, watcher);
  confinement_.sweep(worker);

  const driver::Report report = driver::parse_report(driver::read_file(report_file));
  StageResult result;
  result.test_seconds = outcome.seconds;
  result.output = report.output.substr(0, kKeptOutput);
  for (const driver::CaseRecord& one : report.cases) result.cases.push_back(case_of(one));
  const std::string problem = contradiction(report, outcome);
  result.mark = problem.empty() ? mark_of(driver::verdict_of(report)) : Mark::kFault;
  result.sentence = problem;
  if (problem.empty()) explain(report, result);
  const bool no_hello =
      !result.cases.empty() && result.cases.front().name == driver::kBeforeFirstCase;
  if (no_hello && is_of_wall(result.output)) {
    result.mark = Mark::kFault;
    result.sentence = "the wall failed: " + result.output.substr(0, 200);
  }
  if (guard.memory_exceeded()) {
    result.mark = Mark::kMemory;
    result.sentence = "it uses more than " + number_text(scheme_.memory_gib) + " GiB of memory";
  } else if (guard.processes_exceeded()) {
    result.mark = Mark::kRule;
    result.sentence = "it starts more than " + std::to_string(scheme_.processes) + " processes";
  } else if (outcome.timed_out) {
    result.mark = Mark::kHang;
    result.sentence =
        "all cases of a stage take more than " + number_text(scheme_.stage_seconds) + " s";
  }
  return result;
}

void Examiner::resolve_faults(StageResult& result,
                              const fs::path& runner,
                              const fs::path& folder,
                              int worker) const {
  Room room;
  room.readable = {runner};
  const auto lines_of = [&](const std::string& counter) {
    driver::Command command;
    command.arguments = confinement_.wrap({"addr2line", "-i", "-e", runner, counter}, room,
                                          {4ull << 30, 1, 20, 8}, worker);
    command.limit_s = 20;
    command.keep_bytes = kKeptOutput;
    return driver::run_process(command).output;
  };
  std::map<std::string, std::string> known;  // the same place often fails in many cases
  for (CaseResult& one : result.cases) {
    std::string resolved;
    for (const std::string& line : driver::split_lines(one.fault)) {
      constexpr std::string_view kCounter = "  pc 0x";
      if (line.rfind(kCounter, 0) != 0) {
        resolved += line + "\n";
        continue;
      }
      const std::string counter = line.substr(line.find("0x"));
      if (known.count(counter) == 0 && known.size() < 8) {
        known[counter] = driver::pick_frame(lines_of(counter), folder);
      }
      if (!known[counter].empty()) resolved += "  at " + known[counter] + "\n";
    }
    one.fault = resolved;
  }
}

Timing Examiner::time(const Stage& stage, const fs::path& launcher, const fs::path& folder) const {
  const fs::path report = folder / "bench.jsonl";
  driver::Command command;
  command.arguments = {course_.tree("host") / "tests" / "bench_stage",
                       "--stage",
                       stage.stem,
                       "--shape",
                       scheme_.performance_shape,
                       "--report",
                       report,
                       "--rounds",
                       "5",
                       "--solution",
                       driver::runner_path(course_, backend_.name(), stage, "solution"),
                       "--mine",
                       launcher};
  command.folder = folder;
  command.limit_s = kBenchSeconds;
  command.keep_bytes = kKeptOutput;
  const driver::Outcome outcome = driver::run_process(command);
  Timing timing = timing_of(driver::read_file(report));
  if (outcome.timed_out) timing.problem = "timing it takes too long";
  return timing;
}

StageResult Examiner::examine(const Stage& stage,
                              const fs::path& runner,
                              const std::string& side,
                              const std::vector<CaseResult>& expected,
                              const fs::path& folder,
                              int worker) {
  Room room;
  room.readable = {runner};
  room.gpu = backend_.cuda;
  Limits limits;
  limits.file_bytes = kRunnerFileBytes;
  limits.cpu_seconds = static_cast<int>(scheme_.stage_seconds) * 4;
  const fs::path launcher =
      write_launcher(folder, confinement_.wrap({runner}, room, limits, worker));
  std::unique_lock<std::mutex> one_at_a_time(device_, std::defer_lock);
  if (backend_.cuda) one_at_a_time.lock();

  StageResult result;
  bool odd = false;
  for (int faults = 0, odds = 0, attempt = 1;; ++attempt) {
    result = run_once(stage, launcher, side, folder, worker);
    result.attempts = attempt;
    const bool started =
        !result.cases.empty() && result.cases.front().name != driver::kBeforeFirstCase;
    if (result.mark != Mark::kFault && started && !expected.empty() && result.mark != Mark::kHang &&
        result.mark != Mark::kMemory && result.mark != Mark::kRule &&
        !same_cases(result, expected)) {
      result.mark = Mark::kFault;
      result.sentence = "the test program did not judge every case";
    }
    if (result.mark == Mark::kFault && faults++ < kFaultRetries) continue;
    const bool died = result.mark == Mark::kHang || result.mark == Mark::kCrash;
    if (died && odds++ < kOddRetries) {
      odd = true;
      continue;
    }
    break;
  }
  result.flaky = odd && result.mark != Mark::kHang && result.mark != Mark::kCrash;
  resolve_faults(result, runner, folder, worker);
  const bool timed = backend_.cuda && scheme_.performance_share > 0 && side == "mine";
  if (timed && result.mark == Mark::kPass) result.timing = time(stage, launcher, folder);
  return result;
}

}  // namespace moe::grade
