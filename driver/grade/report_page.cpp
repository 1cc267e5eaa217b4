// One page per student: verdicts and sentences, nothing that gives hidden cases away.
#include <algorithm>

#include "driver/grade/reports.h"

namespace moe::grade {
namespace {

using driver::CaseState;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : clean_text(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

bool is_failed(const CaseResult& one) {
  return one.state != CaseState::kPass && one.state != CaseState::kSkip;
}

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<style>
body { font: 16px/1.5 sans-serif; max-width: 48em; margin: 2em auto; padding: 0 1em; }
table { border-collapse: collapse; }
td, th { padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }
pre { background: #f4f4f4; padding: .6em; overflow-x: auto; }
</style>
)";

std::string groups_table(const StageScore& score) {
  std::string text = "<table>\n<tr><th>cases<th>passed<th>points</tr>\n";
  for (const GroupScore& group : score.groups) {
    text += "<tr><td>" + escaped(group.group) + "<td>" + std::to_string(group.passed) + " of " +
            std::to_string(group.cases) + "<td>" + points_text(group.earned) + " of " +
            points_text(group.maximum) + "</tr>\n";
  }
  if (score.performance) {
    text += "<tr><td>speed<td>" + points_text(score.ratio) + " times the reference's time<td>" +
            points_text(score.performance->earned) + " of " +
            points_text(score.performance->maximum) + "</tr>\n";
  }
  if (score.cost) {
    text += "<tr><td>cost<td>" + std::to_string(score.cost->passed) + " of " +
            std::to_string(score.cost->cases) + " limits kept<td>" +
            points_text(score.cost->earned) + " of " + points_text(score.cost->maximum) + "</tr>\n";
  }
  return text + "</table>\n";
}

// What one mistake looks like, and in how many cases it was seen.
std::string diagnosis(const StageResult& result, const Stage& stage) {
  const CaseResult* shown = result.diagnosed();
  if (shown == nullptr) return {};
  std::string text;
  std::string lines;
  if (shown->hidden()) {
    text += "<p>Seen in a hidden case.</p>\n";
  } else {
    const bool is_case = shown->name != driver::kBeforeFirstCase;
    if (is_case) lines += "case     " + shown->name + "   " + shown->shape + "\n";
    if (!shown->step.empty()) lines += "run as   " + shown->step + "\n";
    for (const std::string& line : shown->evidence) lines += "found    " + line + "\n";
    if (!shown->fault.empty()) lines += shown->fault;
    lines += "again    drill " + std::string(stage.id) + " --full" +
             (is_case ? " --case " + shown->name : "") + "\n";
  }
  if (!shown->region.empty()) lines += "where    region " + shown->region + "\n";
  if (!shown->note.empty()) {
    lines += "note     content/" + std::string(stage.stem) + ".md, section " + shown->note + "\n";
  }
  return lines.empty() ? text : text + "<pre>" + escaped(lines) + "</pre>\n";
}

// Each sentence once, with the cases that it explains.
std::string failed_cases(const StageResult& result, const Scheme& scheme) {
  struct Row {
    std::string sentence;
    CaseState state;
    std::string names;
  };
  std::vector<Row> rows;
  std::size_t hidden = 0;
  for (const CaseResult& one : result.cases) {
    if (!is_failed(one)) continue;
    if (one.hidden() && !scheme.show_hidden_names) {
      ++hidden;
      continue;
    }
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) {
      return r.sentence == one.sentence && r.state == one.state;
    });
    if (row == rows.end()) row = rows.insert(row, {one.sentence, one.state, ""});
    row->names += (row->names.empty() ? "" : ", ") + one.name;
  }
  std::string text;
  for (const Row& row : rows) {
    text += "<tr><td>" + std::string(word_of(row.state)) + "<td>" + escaped(row.sentence) + "<td>" +
            escaped(row.names) + "</tr>\n";
  }
  if (!text.empty()) text = "<table>\n<tr><th>verdict<th><th>cases</tr>\n" + text + "</table>\n";
  if (hidden > 0) {
    text += "<p>" + std::to_string(hidden) + " hidden case" + (hidden == 1 ? "" : "s") +
            " did not pass.</p>\n";
  }
  return text;
}

std::string stage_section(const ClassReport& report,
                          const StudentResult& student,
                          const Stage& stage) {
  const StageResult& result = student.stages.at(stage.stem);
  const StageScore score = report.score(student, stage);
  std::string text =
      "<h2>" + std::string(stage.id) + " " + escaped(stage.title) + ": " + word_of(result.mark);
  text += score.scored ? ", " + points_text(score.earned) + " of " + points_text(score.maximum)
                       : ", not scored";
  text += "</h2>\n";
  if (!score.scored) {
    text += "<p>The grader failed here; this is not your fault and will be graded again.</p>\n";
    return text;
  }
  if (!result.sentence.empty()) text += "<p><b>" + escaped(result.sentence) + "</b></p>\n";
  if (!score.reason.empty()) text += "<p>" + escaped(score.reason) + "</p>\n";
  if (result.flaky) text += "<p>It hung in a first try and was run again.</p>\n";
  if (!result.text.empty()) text += "<pre>" + escaped(result.text) + "</pre>\n";
  if (result.mark != Mark::kPass) text += diagnosis(result, stage);
  if (!result.cases.empty()) text += groups_table(score) + failed_cases(result, report.scheme);
  return text;
}

}  // namespace

std::string student_page(const ClassReport& report, const StudentResult& student) {
  std::string text = kHead;
  const std::string name = escaped(student.student);
  text += "<title>" + name + "</title>\n<h1>" + name + "</h1>\n";
  double earned = 0;
  double maximum = 0;
  const bool complete = report.total(student, earned, maximum);
  text += "<p>" + (complete ? points_text(earned) : "not complete:") + " of " +
          points_text(maximum) + " points. Kernels ran on: " + escaped(report.device) + ", " +
          report.set + " set.";
  if (!student.commit.empty()) text += " Commit " + escaped(student.commit.substr(0, 12)) + ".";
  text += "</p>\n";
  for (const Stage* stage : report.stages) text += stage_section(report, student, *stage);
  return text + "</html>\n";
}

}  // namespace moe::grade
