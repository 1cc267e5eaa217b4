// results.csv, summary.csv (RFC 4180) and results.json.
#include <nlohmann/json.hpp>

#include "driver/grade/reports.h"

namespace moe::grade {
namespace {

using Json = nlohmann::ordered_json;
using driver::CaseState;

// A cell that a spreadsheet would run as a formula gets a quote in front.
std::string cell(std::string text) {
  text = clean_text(text);
  if (!text.empty() && std::string("=+-@\t\r").find(text[0]) != std::string::npos) {
    text.insert(text.begin(), '\'');
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string row(const std::vector<std::string>& cells) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) text += (i == 0 ? "" : ",") + cell(cells[i]);
  return text + "\r\n";
}

std::string number(double value, const char* format) {
  if (!(value > 0)) return {};
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// What one case of a group is worth, and what this one got.
std::pair<double, double> points_of(const StageScore& score, const CaseResult& one) {
  for (const GroupScore& group : score.groups) {
    if (group.group != one.group()) continue;
    const double maximum = group.maximum / group.cases;
    const bool passed = one.state == CaseState::kPass && group.passed > 0;
    return {passed ? group.earned / group.passed : 0, maximum};
  }
  return {0, 0};
}

void add_stage_rows(const ClassReport& report,
                    const StudentResult& student,
                    const Stage& stage,
                    std::string& text) {
  const auto found = student.stages.find(stage.stem);
  if (found == student.stages.end()) return;
  const StageResult& result = found->second;
  const StageScore score = report.score(student, stage);
  const auto add = [&](const std::string& name, const std::string& verdict, const std::string& code,
                       double earned, double maximum, const std::string& message) {
    const std::string group = name.substr(0, name.find('/'));
    text +=
        row({report.run_id, student.student, student.commit, stage.id, group, name, verdict, code,
             score.scored ? points_text(earned) : "", points_text(maximum),
             number(result.timing.mine_us / 1000, "%.4f"),
             number(result.timing.reference_us / 1000, "%.4f"), number(score.ratio, "%.3f"),
             report.device, std::to_string(result.attempts), result.flaky ? "yes" : "no", message});
  };
  add("stage", word_of(result.mark), result.code, score.earned, score.maximum,
      result.sentence.empty() ? score.reason : result.sentence);
  for (const CaseResult& one : result.cases) {
    const auto [earned, maximum] = points_of(score, one);
    add(one.name, word_of(one.state), one.code, earned, maximum, one.sentence);
  }
}

Json json_of(const CaseResult& one, const StageScore& score) {
  const auto [earned, maximum] = points_of(score, one);
  Json json = {{"name", one.name},
               {"verdict", word_of(one.state)},
               {"score", earned},
               {"max_score", maximum},
               {"visibility", one.hidden() ? "hidden" : "visible"}};
  const auto add = [&](const char* key, const std::string& text) {
    if (!text.empty()) json[key] = clean_text(text);
  };
  add("code", one.code);
  add("message", one.sentence);
  add("region", one.region);
  add("note", one.note);
  add("step", one.step);
  add("shape", one.shape);
  add("fault", one.fault);
  if (!one.evidence.empty()) {
    json["evidence"] = Json::array();
    for (const std::string& line : one.evidence) json["evidence"].push_back(clean_text(line));
  }
  json["seconds"] = one.seconds;
  return json;
}

Json json_of(const StageResult& result, const StageScore& score, const Stage& stage) {
  Json json = {{"stage", stage.id},
               {"verdict", word_of(result.mark)},
               {"code", result.code},
               {"message", clean_text(result.sentence)},
               {"score", score.scored ? Json(score.earned) : Json(nullptr)},
               {"max_score", score.maximum},
               {"reason", score.reason},
               {"attempts", result.attempts},
               {"flaky", result.flaky},
               {"build_seconds", result.build_seconds},
               {"test_seconds", result.test_seconds}};
  json["compiler"] = clean_text(result.text);
  json["output"] = clean_text(result.output);
  if (score.performance) {
    json["performance"] = {{"score", score.performance->earned},
                           {"max_score", score.performance->maximum},
                           {"mine_us", result.timing.mine_us},
                           {"reference_us", result.timing.reference_us},
                           {"ratio", score.ratio}};
  }
  if (score.cost) {
    json["cost"] = {{"score", score.cost->earned},
                    {"max_score", score.cost->maximum},
                    {"sectors_per_request", result.cost.sectors_per_request},
                    {"bank_conflicts", result.cost.bank_conflicts},
                    {"bytes_ratio", result.cost.bytes_ratio}};
  }
  json["cases"] = Json::array();
  for (const CaseResult& one : result.cases) json["cases"].push_back(json_of(one, score));
  return json;
}

}  // namespace

std::string results_csv(const ClassReport& report) {
  std::string text =
      row({"run_id", "student", "commit", "stage", "test", "case", "verdict", "code", "score",
           "max_score", "ms", "ms_ref", "ratio", "device", "attempts", "flaky", "message"});
  for (const StudentResult& student : report.students) {
    for (const Stage* stage : report.stages) add_stage_rows(report, student, *stage, text);
  }
  return text;
}

std::string summary_csv(const ClassReport& report) {
  std::vector<std::string> head{"student"};
  for (const Stage* stage : report.stages) head.emplace_back(stage->id);
  for (const Stage* stage : report.stages) head.push_back(std::string(stage->id) + "_verdict");
  head.insert(head.end(), {"total", "max_total", "flaky"});
  std::string text = row(head);
  for (const StudentResult& student : report.students) {
    std::vector<std::string> cells{student.student};
    std::string flaky;
    for (const Stage* stage : report.stages) {
      const StageScore score = report.score(student, *stage);
      cells.push_back(score.scored ? points_text(score.earned) : "");
    }
    for (const Stage* stage : report.stages) {
      const StageResult& result = student.stages.at(stage->stem);
      cells.emplace_back(word_of(result.mark));
      if (result.flaky) flaky += (flaky.empty() ? "" : " ") + std::string(stage->id);
    }
    double earned = 0;
    double maximum = 0;
    const bool complete = report.total(student, earned, maximum);
    cells.insert(cells.end(), {complete ? points_text(earned) : "", points_text(maximum), flaky});
    text += row(cells);
  }
  return text;
}

std::string results_json(const ClassReport& report) {
  Json json = {{"format", "moe-drills results"}, {"version", 1},
               {"run_id", report.run_id},        {"set", report.set},
               {"device", report.device},        {"wall", report.wall},
               {"secret", report.secret}};
  json["students"] = Json::array();
  for (const StudentResult& student : report.students) {
    double earned = 0;
    double maximum = 0;
    const bool complete = report.total(student, earned, maximum);
    Json one = {{"student", clean_text(student.student)},
                {"commit", student.commit},
                {"score", complete ? Json(earned) : Json(nullptr)},
                {"max_score", maximum}};
    one["stages"] = Json::array();
    for (const Stage* stage : report.stages) {
      one["stages"].push_back(
          json_of(student.stages.at(stage->stem), report.score(student, *stage), *stage));
    }
    json["students"].push_back(one);
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace moe::grade
