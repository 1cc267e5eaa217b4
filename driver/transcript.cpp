#include "driver/transcript.h"

#include <algorithm>
#include <map>

namespace moe::driver {
namespace {

constexpr std::size_t kPrintedLines = 20;  // of the learner's printf
constexpr std::size_t kIndent = 10;        // "  found   "

std::string labelled(std::string_view label, std::string_view text) {
  return wrapped("  " + padded(label, kIndent - 2), text);
}

std::string group_of(const std::string& case_name) {
  return case_name.substr(0, case_name.find('/'));
}

// The first line of a verdict about one case, with shape and seed where they fit.
std::string case_line(Verdict verdict, const CaseRecord& one, const Paint& paint) {
  const std::string word = padded(word_of(verdict), 7);
  std::string details = one.shape;
  if (one.seed) details += (details.empty() ? "" : "   ") + ("seed " + std::to_string(*one.seed));
  const std::string colored = paint.bad(word_of(verdict)) + word.substr(word.find(' '));
  if (word.size() + one.name.size() + 3 + details.size() <= columns()) {
    return colored + paint.strong(one.name) + (details.empty() ? "" : "   " + details) + "\n";
  }
  return colored + paint.strong(one.name) + "\n" + wrapped("       ", details);
}

std::string fault_lines(const std::string& fault) {
  std::string text;
  for (const std::string& line : split_lines(fault)) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    text += wrapped(std::string(indent + 2, ' '), without_control_bytes(line.substr(indent)));
  }
  return text;
}

// A step of the layer belongs to the stage whose region it is: "m3.layer" to m3.
std::string stage_of_region(const std::string& region, const Scene& scene) {
  const std::string id = region.substr(0, region.find('.'));
  return find_stage(id) != nullptr ? id : scene.stage.id;
}

std::string place_lines(Verdict verdict, const CaseRecord& one, const Scene& scene) {
  std::string text;
  if (!one.region.empty()) {
    const int line = marker_line(scene.source, one.region);
    std::string place = source_name(scene.stage, scene.side);
    if (line > 0) place += ":" + std::to_string(line);
    text += labelled("code", place + " region " + one.region);
  }
  const std::string id = stage_of_region(one.region, scene);
  if (!one.note.empty()) {
    std::string note = "drill notes " + id + " " + one.note;
    if (!one.code.empty()) note += " (" + one.code + ")";
    text += labelled("notes", note);
  } else if (!one.code.empty() && one.code != word_of(verdict)) {
    text += labelled("mistake", "drill explain " + one.code);
  }
  if (scene.side == "mine") {
    text += labelled("help", "drill hint " + id);
    if (verdict == Verdict::kWrong)
      text += labelled("look", scene.again + " --map, --print ROW,COL");
  }
  std::string again = scene.again;
  if (one.name != kBeforeFirstCase) again += " --case " + shell_quoted(one.name);
  if (one.seed) again += " --seed " + std::to_string(*one.seed);
  return text + labelled("again", again);
}

// Two failures are of one kind when the same mistake, else the same words, explain both.
bool same_kind(const CaseRecord& a, const CaseRecord& b) {
  if (a.state != b.state) return false;
  if (!a.code.empty() || !b.code.empty()) return a.code == b.code;
  if (!a.sentence.empty() || !b.sentence.empty()) return a.sentence == b.sentence;
  return a.fault.substr(0, a.fault.find('\n')) == b.fault.substr(0, b.fault.find('\n'));
}

bool is_failure(CaseState state) {
  return state == CaseState::kWrong || state == CaseState::kCrash || state == CaseState::kHang;
}

// "3 other cases fail the same way: ...", the names on a line of their own where that shows more.
std::string names_line(const std::vector<std::string>& names, const std::string& how) {
  if (names.empty()) return {};
  const std::string intro = "  " + counted(names.size(), "other case") +
                            (names.size() == 1 ? " fails " : " fail ") + how + ":";
  const std::string all = name_list(names, std::string::npos);
  if (intro.size() + 1 + all.size() <= columns()) return intro + " " + all + "\n";
  return intro + "\n    " + name_list(names, columns() - 4) + "\n";
}

// Everything besides the first failure, in as few lines as possible.
std::string other_lines(const Report& report, const CaseRecord& shown) {
  std::vector<std::string> same;
  std::vector<std::string> different;
  for (const CaseRecord& one : report.cases) {
    if (&one == &shown || !is_failure(one.state)) continue;
    (same_kind(one, shown) ? same : different).push_back(one.name);
  }
  std::string text = names_line(same, "the same way") + names_line(different, "in another way");
  if (const std::size_t todo = report.count(CaseState::kTodo)) {
    text += "  " + counted(todo, "case") + " reached a part that is not written yet\n";
  }
  if (const std::size_t not_run = report.count(CaseState::kNotRun)) {
    text += "  " + counted(not_run, "case") + " not run after that\n";
  }
  return text.empty() ? text : "\n" + text;
}

std::string failure_text(Verdict verdict,
                         const CaseRecord& one,
                         const Report& report,
                         const Scene& scene,
                         const Paint& paint) {
  std::string text = case_line(verdict, one, paint) + "\n";
  if (!one.sentence.empty()) text += paint.strong(wrapped("  ", one.sentence));
  for (const std::string& other : one.or_else) text += wrapped("  ", "Or: " + other);
  if (!one.sentence.empty()) text += "\n";
  if (!one.fault.empty()) text += fault_lines(one.fault) + "\n";
  std::string label = "found";
  for (const std::string& evidence : one.evidence) {
    text += labelled(label, without_control_bytes(evidence));
    label.clear();
  }
  if (!one.step.empty()) text += labelled("when", one.step);
  return text + place_lines(verdict, one, scene) + other_lines(report, one);
}

// The first sentence of an instruction says what to write; a long one is cut after two lines.
std::string first_sentence(const std::string& text) {
  constexpr std::size_t kLongest = 140;
  // Not the dots of "k0 .. k7" and "e.g. this".
  const auto ends_here = [&text](std::size_t at) {
    const bool before = at > 0 && text[at - 1] != ' ' && text[at - 1] != '.';
    const bool abbreviation = at > 1 && text[at - 2] == '.';
    return before && !abbreviation && (at + 1 == text.size() || text[at + 1] == ' ');
  };
  std::size_t end = text.find('.');
  while (end != std::string::npos && !ends_here(end)) end = text.find('.', end + 1);
  std::string sentence = text.substr(0, end);
  if (sentence.size() <= kLongest) return sentence;
  return sentence.substr(0, sentence.rfind(' ', kLongest)) + " ...";
}

std::string blank_line(const Blank& blank, const Scene& scene, std::size_t width) {
  std::string place = source_name(scene.stage, scene.side);
  if (blank.line > 0) place += ":" + std::to_string(blank.line);
  const std::string box = blank.written ? "  [x] " : "  [ ] ";
  const std::string line = box + padded(blank.label, width) + "  " + place;
  if (blank.written) return line + "\n";
  const std::string what = first_sentence(blank.instruction);
  if (what.empty()) return line + "\n";
  if (line.size() + 3 + what.size() <= columns()) return line + "   " + what + "\n";
  return line + "\n" + wrapped("        ", what);
}

std::string todo_text(const Report& report, const Scene& scene, const Paint& paint) {
  std::size_t open = 0;
  std::size_t width = 0;
  for (const Blank& blank : scene.blanks) {
    open += blank.written ? 0 : 1;
    width = std::max(width, blank.label.size());
  }
  const std::size_t all = scene.blanks.size();
  std::string text = paint.open("TODO") + "   " + scene.stage.id + "   " + std::to_string(open) +
                     " of " + counted(all, "region") + " to write\n";
  for (const Blank& blank : scene.blanks) text += blank_line(blank, scene, width);
  const std::size_t passed = report.count(CaseState::kPass);
  const std::string reached = counted(report.count(CaseState::kTodo), "case");
  const std::string verb = report.count(CaseState::kTodo) == 1 ? " reaches" : " reach";
  text += "\n" + labelled("cases", reached + verb + " a blank, " + std::to_string(passed) +
                                       (passed == 1 ? " reaches" : " reach") + " none and pass" +
                                       (passed == 1 ? "es" : ""));
  text += labelled("notes",
                   "drill notes " + std::string(scene.stage.id) + ", drill hint " + scene.stage.id);
  return text;
}

std::string pass_text(const Report& report, const Scene& scene, const Paint& paint) {
  std::string text = paint.good("PASS") + "   " + counted(report.count(CaseState::kPass), "case");
  if (report.cases.size() == 1) text += " (" + report.cases.front().name + ")";
  if (const CaseRecord* skipped = report.first(CaseState::kSkip)) {
    text += ", " + std::to_string(report.count(CaseState::kSkip)) + " skipped";
    if (!skipped->sentence.empty()) text += " (" + skipped->sentence + ")";
  }
  text += "\n";
  if (scene.emulator) {
    text += labelled("note", "the emulator proves the logic, not a GPU's memory model or speed");
  }
  return text;
}

}  // namespace

std::string header_text(const Scene& scene, std::string_view backend, const Paint& paint) {
  std::string text;
  if (scene.side == "solution") text += paint.open("SOLUTION (not your file)") + "\n";
  const std::string title = padded(scene.stage.id, 4) + scene.stage.title;
  const std::string file = source_name(scene.stage, scene.side);
  text += paint.strong(title);
  const std::size_t length = title.size() + file.size() + backend.size() + 6;
  return text + (length <= columns() ? "   " : "\n    ") + file + "   " + std::string(backend) +
         "\n";
}

std::string test_text(const Report& report, double seconds) {
  std::vector<std::string> groups;  // in the order of their first case
  std::map<std::string, std::pair<std::size_t, std::size_t>> counts;
  for (const CaseRecord& one : report.cases) {
    const std::string group = group_of(one.name);
    if (counts.count(group) == 0) groups.push_back(group);
    auto& [passed, judged] = counts[group];
    passed += one.state == CaseState::kPass ? 1 : 0;
    judged += one.state == CaseState::kSkip ? 0 : 1;
  }
  std::vector<std::string> parts;
  for (const std::string& group : groups) {
    const auto& [passed, judged] = counts[group];
    if (judged == 0) continue;
    parts.push_back(group + " " + std::to_string(passed) + "/" + std::to_string(judged));
  }
  if (const std::size_t skipped = report.count(CaseState::kSkip)) {
    parts.push_back("skipped " + std::to_string(skipped));
  }
  parts.push_back(" seed " + std::to_string(report.seed));
  parts.push_back(" " + seconds_text(seconds));

  std::string text;
  std::string line = "test ";
  for (const std::string& part : parts) {
    if (line.size() + 2 + part.size() > columns()) {
      text += line + "\n";
      line = "       " + part.substr(part.find_first_not_of(' '));
    } else {
      line += "  " + part;
    }
  }
  return text + line + "\n";
}

std::string output_text(const Report& report, const Scene& scene) {
  const std::vector<std::string> lines = split_lines(report.output);
  const std::string mark = scene.side == "mine" ? "your printf | " : "printf | ";
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kPrintedLines; ++i) {
    text += mark + without_control_bytes(lines[i]) + "\n";
  }
  if (lines.size() > kPrintedLines || report.output_truncated) {
    const std::size_t rest = lines.size() - std::min(lines.size(), kPrintedLines);
    text += mark + "... ";
    if (rest > 0) text += counted(rest, "more line");
    if (report.output_truncated) text += rest > 0 ? ", and more that was not kept" : "and more";
    text += "\n";
  }
  return text;
}

std::string verdict_text(const Report& report, const Scene& scene, const Paint& paint) {
  const Verdict verdict = verdict_of(report);
  switch (verdict) {
    case Verdict::kPass:
      return pass_text(report, scene, paint);
    case Verdict::kTodo:
      return todo_text(report, scene, paint);
    case Verdict::kHang:
      return failure_text(verdict, *report.first(CaseState::kHang), report, scene, paint);
    case Verdict::kCrash:
      return failure_text(verdict, *report.first(CaseState::kCrash), report, scene, paint);
    case Verdict::kWrong:
      return failure_text(verdict, *report.first(CaseState::kWrong), report, scene, paint);
    case Verdict::kSkip: {
      const std::string& reason = report.first(CaseState::kSkip)->sentence;
      const std::string text =
          wrapped("SKIP   ", std::string(scene.stage.id) + ": " +
                                 (reason.empty() ? "no case can run here" : reason));
      return paint.open(text.substr(0, 4)) + text.substr(4);
    }
    default:
      return {};
  }
}

std::string build_failure_text(const Scene& scene,
                               const Build& build,
                               std::string_view log,
                               std::string_view advice,
                               const Paint& paint) {
  const std::size_t errors =
      std::max<std::size_t>(1, count_diagnostics(build.compiler_text, "error"));
  std::string text = paint.bad("BUILD") + "  " + scene.stage.id + "   " + counted(errors, "error") +
                     "   full log: " + std::string(log) + "\n";
  if (!advice.empty()) text += labelled("note", advice);
  return text;
}

}  // namespace moe::driver
