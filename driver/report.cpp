#include "driver/report.h"

#include <algorithm>
#include <exception>
#include <map>
#include <nlohmann/json.hpp>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

using Json = nlohmann::json;

// Throws for an unknown word.
CaseState state_of(const std::string& word) {
  static const std::map<std::string, CaseState> kStates{
      {"pass", CaseState::kPass},      {"wrong", CaseState::kWrong}, {"todo", CaseState::kTodo},
      {"crash", CaseState::kCrash},    {"hang", CaseState::kHang},   {"skip", CaseState::kSkip},
      {"not_run", CaseState::kNotRun},
  };
  return kStates.at(word);
}

CaseRecord case_of(const Json& record) {
  CaseRecord result;
  result.name = record.at("name").get<std::string>();
  result.state = state_of(record.at("state").get<std::string>());
  result.seconds = record.value("seconds", 0.0);
  result.shape = record.value("shape", "");
  if (record.contains("seed")) result.seed = record.at("seed").get<std::uint64_t>();
  result.digest = record.value("digest", std::uint64_t{0});
  result.step = record.value("step", "");
  result.sentence = record.value("sentence", "");
  result.code = record.value("code", "");
  result.region = record.value("region", "");
  result.note = record.value("note", "");
  result.evidence = record.value("evidence", std::vector<std::string>());
  result.fault = record.value("fault", "");
  result.todo = record.value("todo", std::vector<std::string>());
  result.trace = record.value("trace", std::vector<std::string>());
  if (record.contains("map")) {
    const Json& map = record.at("map");
    result.map = {map.at("name").get<std::string>(), map.at("rows").get<std::size_t>(),
                  map.at("columns").get<std::size_t>(), map.at("cells").get<std::string>()};
    if (result.map.cells.size() != result.map.rows * result.map.columns) result.map = {};
  }
  return result;
}

void add_record(const Json& record, Report& report) {
  const std::string type = record.at("type").get<std::string>();
  if (type == "start") {
    report.started = true;
    report.device = record.value("device", "");
    report.set = record.value("set", "");
    report.seed = record.value("seed", std::uint64_t{0});
  } else if (type == "case") {
    report.cases.push_back(case_of(record));
  } else if (type == "diagnosis") {
    // What one case leaves open the run as a whole may settle: its word replaces the case's own.
    for (CaseRecord& one : report.cases) {
      if (one.name != record.at("case").get<std::string>()) continue;
      report.diagnosed = one.name;
      one.sentence = record.value("sentence", one.sentence);
      one.code = record.value("code", one.code);
      one.region = record.value("region", one.region);
      one.note = record.value("note", one.note);
      for (const Json& other : record.value("or", Json::array())) {
        one.or_else.push_back(other.value("sentence", "") + " (" + other.value("code", "") + ")");
      }
    }
  } else if (type == "output") {
    report.output += record.value("text", "");
    report.output_truncated = report.output_truncated || record.value("truncated", false);
  } else if (type == "usage") {
    report.usage = record.value("message", "");
  } else if (type == "end") {
    report.ended = true;
  }
}

}  // namespace

std::size_t Report::count(CaseState state) const {
  return static_cast<std::size_t>(std::count_if(
      cases.begin(), cases.end(), [&](const CaseRecord& one) { return one.state == state; }));
}

const CaseRecord* Report::first(CaseState state) const {
  auto found = std::find_if(cases.begin(), cases.end(), [&](const CaseRecord& one) {
    return one.state == state && one.name == diagnosed;
  });
  if (found == cases.end()) {
    found = std::find_if(cases.begin(), cases.end(),
                         [&](const CaseRecord& one) { return one.state == state; });
  }
  return found == cases.end() ? nullptr : &*found;
}

Report parse_report(std::string_view text) {
  Report report;
  for (const std::string& line : split_lines(text)) {
    if (line.empty()) continue;
    try {
      add_record(Json::parse(line), report);
    } catch (const std::exception&) {
      ++report.damaged_lines;  // the last line of a test binary that died, for example
    }
  }
  return report;
}

Verdict verdict_of(const Report& report) {
  if (report.count(CaseState::kHang) > 0) return Verdict::kHang;
  if (report.count(CaseState::kCrash) > 0) return Verdict::kCrash;
  if (report.count(CaseState::kWrong) > 0) return Verdict::kWrong;
  if (report.count(CaseState::kTodo) > 0) return Verdict::kTodo;
  // A case that did not run without one that failed is no pass.
  if (report.count(CaseState::kNotRun) > 0) return Verdict::kFault;
  if (report.count(CaseState::kPass) > 0) return Verdict::kPass;
  return report.count(CaseState::kSkip) > 0 ? Verdict::kSkip : Verdict::kFault;
}

const char* word_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "PASS";
    case Verdict::kWrong:
      return "WRONG";
    case Verdict::kUsage:
      return "USAGE";
    case Verdict::kTodo:
      return "TODO";
    case Verdict::kBuild:
      return "BUILD";
    case Verdict::kCrash:
      return "CRASH";
    case Verdict::kHang:
      return "HANG";
    case Verdict::kSlow:
      return "SLOW";
    case Verdict::kSkip:
      return "SKIP";
    case Verdict::kFault:
      return "FAULT";
  }
  return "FAULT";
}

}  // namespace moe::driver
