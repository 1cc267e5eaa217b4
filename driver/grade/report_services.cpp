// JUnit XML, Gradescope's results.json and the JSON of GitHub Classroom's autograding reporter.
#include <nlohmann/json.hpp>

#include "driver/grade/reports.h"

namespace moe::grade {
namespace {

using Json = nlohmann::ordered_json;
using driver::CaseState;

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string xml_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\n':
        escaped += "&#10;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

bool is_skip(const CaseResult& one) {
  return one.state == CaseState::kSkip || one.state == CaseState::kTodo ||
         one.state == CaseState::kNotRun;
}

std::string junit_case(const std::string& class_name, const CaseResult& one) {
  std::string text = "    <testcase classname=\"" + class_name + "\" name=\"" +
                     xml_escaped(one.name) + "\" time=\"" + seconds(one.seconds) + "\"";
  if (one.state == CaseState::kPass) return text + "/>\n";
  text += ">\n";
  const std::string message = xml_escaped(one.sentence);
  const std::string type = xml_escaped(one.code.empty() ? word_of(one.state) : one.code);
  if (is_skip(one)) {
    text += "      <skipped message=\"" + message + "\"/>\n";
  } else {
    const bool error = one.state == CaseState::kCrash || one.state == CaseState::kHang;
    const std::string tag = error ? "error" : "failure";
    text += "      <" + tag + " message=\"" + message + "\" type=\"" + type + "\">";
    for (const std::string& line : one.evidence) text += xml_escaped(line) + "\n";
    text += "</" + tag + ">\n";
  }
  return text + "    </testcase>\n";
}

// A stage without cases (it did not build, was not handed in) is one case that says why.
std::vector<CaseResult> cases_or_reason(const StageResult& result) {
  if (!result.cases.empty()) return result.cases;
  CaseResult only;
  only.name = "stage";
  only.state = CaseState::kWrong;
  only.code = word_of(result.mark);
  only.sentence = result.sentence;
  return {only};
}

std::string junit_suite(const StudentResult& student, const Stage& stage) {
  const StageResult& result = student.stages.at(stage.stem);
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
  std::string cases;
  const std::string name = xml_escaped(student.student + "." + stage.id);
  const std::vector<CaseResult> all = cases_or_reason(result);
  for (const CaseResult& one : all) {
    const bool error = one.state == CaseState::kCrash || one.state == CaseState::kHang;
    errors += error ? 1 : 0;
    skipped += is_skip(one) ? 1 : 0;
    failures += one.state == CaseState::kWrong ? 1 : 0;
    cases += junit_case(name, one);
  }
  return "  <testsuite name=\"" + name + "\" tests=\"" + std::to_string(all.size()) +
         "\" failures=\"" + std::to_string(failures) + "\" errors=\"" + std::to_string(errors) +
         "\" skipped=\"" + std::to_string(skipped) + "\" time=\"" + seconds(result.test_seconds) +
         "\">\n" + cases + "  </testsuite>\n";
}

// What a student may read of a case: hidden ones give their sentence, never data.
std::string visible_output(const CaseResult& one) {
  std::string text = one.sentence;
  if (one.hidden()) return clean_text(text);
  for (const std::string& line : one.evidence) text += "\n" + line;
  if (!one.region.empty()) text += "\nwhere: region " + one.region;
  return clean_text(text);
}

std::string stage_output(const StageResult& result, const StageScore& score) {
  std::string text = std::string(word_of(result.mark));
  if (!result.sentence.empty()) text += ": " + result.sentence;
  if (result.flaky) text += "\nIt passed only after a first try that hung.";
  if (!score.reason.empty()) text += "\n" + score.reason;
  if (!result.text.empty()) text += "\n" + result.text;
  if (!score.scored) text += "\nThis is a fault of the grader, not of the submission.";
  return clean_text(text);
}

Json gradescope_case(const Stage& stage, const GroupScore& group, const StageResult& result) {
  std::string output =
      std::to_string(group.passed) + " of " + std::to_string(group.cases) + " cases pass";
  for (const CaseResult& one : result.cases) {
    if (one.group() != group.group || one.state == CaseState::kPass) continue;
    if (one.state == CaseState::kSkip) continue;
    const std::string name = one.hidden() ? "hidden case" : one.name;
    output += "\n" + name + ": " + word_of(one.state) + ". " + visible_output(one);
  }
  const bool hidden = group.group == "hidden";
  return {{"name", std::string(stage.id) + " " + group.group},
          {"score", group.earned},
          {"max_score", group.maximum},
          {"status", group.passed == group.cases ? "passed" : "failed"},
          {"output", clean_text(output)},
          {"output_format", "text"},
          {"visibility", hidden ? "after_due_date" : "visible"}};
}

}  // namespace

std::string junit_xml(const ClassReport& report) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"moe-drills\">\n";
  for (const StudentResult& student : report.students) {
    for (const Stage* stage : report.stages) text += junit_suite(student, *stage);
  }
  return text + "</testsuites>\n";
}

std::string gradescope_json(const ClassReport& report, const StudentResult& student) {
  Json json = {
      {"output_format", "text"}, {"visibility", "visible"}, {"stdout_visibility", "hidden"}};
  double seconds_in_all = 0;
  json["tests"] = Json::array();
  Json leaderboard = Json::array();
  for (const Stage* stage : report.stages) {
    const StageResult& result = student.stages.at(stage->stem);
    const StageScore score = report.score(student, *stage);
    seconds_in_all += result.build_seconds + result.test_seconds;
    const std::string verdict = stage_output(result, score);
    json["tests"].push_back({{"name", std::string(stage->id) + " " + stage->title},
                             {"score", 0},
                             {"max_score", 0},
                             {"status", result.mark == Mark::kPass ? "passed" : "failed"},
                             {"output", verdict},
                             {"output_format", "text"},
                             {"visibility", "visible"}});
    for (const GroupScore& group : score.groups) {
      json["tests"].push_back(gradescope_case(*stage, group, result));
    }
    if (score.cost) json["tests"].push_back(gradescope_case(*stage, *score.cost, StageResult()));
    if (score.performance) {
      json["tests"].push_back(gradescope_case(*stage, *score.performance, StageResult()));
      leaderboard.push_back(
          {{"name", std::string(stage->id) + " ratio"}, {"value", score.ratio}, {"order", "asc"}});
    }
  }
  double earned = 0;
  double maximum = 0;
  json["output"] = report.total(student, earned, maximum)
                       ? points_text(earned) + " of " + points_text(maximum) + " points"
                       : "a fault of the grader: to be graded again";
  json["score"] = earned;
  json["execution_time"] = seconds_in_all;
  if (!leaderboard.empty()) json["leaderboard"] = leaderboard;
  json["extra_data"] = {
      {"run_id", report.run_id}, {"device", report.device}, {"wall", report.wall}};
  return dump(json);
}

std::string actions_json(const ClassReport& report, const StudentResult& student) {
  Json json = {{"version", 1}, {"status", "pass"}, {"max_score", 0.0}, {"tests", Json::array()}};
  double maximum = 0;
  for (const Stage* stage : report.stages) {
    const StageResult& result = student.stages.at(stage->stem);
    const StageScore score = report.score(student, *stage);
    maximum += score.maximum;
    const char* status = !score.scored ? "error" : result.mark == Mark::kPass ? "pass" : "fail";
    if (std::string(status) == "error") json["status"] = "error";
    if (std::string(status) == "fail" && json["status"] == "pass") json["status"] = "fail";
    json["tests"].push_back({{"name", std::string(stage->id) + " " + stage->title},
                             {"status", status},
                             {"score", score.earned},
                             {"max_score", score.maximum},
                             {"message", stage_output(result, score)},
                             {"test_code", "drill " + std::string(stage->id) + " --full"},
                             {"filename", "mine/" + std::string(stage->stem) + ".cu"},
                             {"line_no", 0},
                             {"duration", result.build_seconds + result.test_seconds}});
  }
  json["max_score"] = maximum;
  return dump(json);
}

}  // namespace moe::grade
