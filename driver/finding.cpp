#include "driver/finding.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <regex>

#include "driver/markdown.h"

namespace moe::driver {
namespace {

constexpr std::size_t kIndent = 5;  // "  1  "

std::string labelled(std::string_view label, std::string_view text) {
  return wrapped(std::string(kIndent, ' ') + padded(label, 8), text);
}

// "at mine/m2_grouped_gemm.cu:140" or the same in brackets, wherever it stands in a line.
void add_places(const std::string& line, std::vector<std::string>& places) {
  static const std::regex kPlace(R"((?:at |\()([^ :()]+\.(?:cu|cuh|h|cpp):[0-9]+))");
  for (std::sregex_iterator at(line.begin(), line.end(), kPlace), end; at != end; ++at) {
    if (std::find(places.begin(), places.end(), (*at)[1].str()) == places.end()) {
      places.push_back((*at)[1].str());
    }
  }
}

// A place alone on its line ("  at FILE:LINE", from a program counter) belongs to the line above.
void add_detail(const std::string& line, Finding& finding) {
  std::string text = line.substr(std::min(line.find_first_not_of(' '), line.size()));
  // A compiler cache may have given the compiler a path from the build tree on.
  for (std::size_t at = text.find("../"); at != std::string::npos; at = text.find("../")) {
    text.erase(at, 3);
  }
  add_places(text, finding.places);
  if (text.rfind("at ", 0) == 0 && !finding.details.empty()) {
    finding.details.back() += " " + text;
  } else {
    finding.details.push_back(text);
  }
}

void add_once(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

// Of the same two lines it depends on the order of threads whether the one read during the copy of
// the other, or before or behind it.
bool same_kind(const std::string& a, const std::string& b) {
  const auto of_order = [](const std::string& kind) {
    return kind == "race" || kind == "missing wait";
  };
  return a == b || (of_order(a) && of_order(b));
}

// "missing wait" -> "MISSING-WAIT"
std::string code_of(std::string kind) {
  for (char& c : kind) {
    c = c == ' ' ? '-' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return kind;
}

// The line of the stage's own file that the finding is about, 0 if it names none.
int line_in(const std::string& file, const Finding& finding) {
  for (const std::string& place : finding.places) {
    const std::size_t colon = place.rfind(':');
    if (place.substr(0, colon) == file) return std::atoi(place.c_str() + colon + 1);
  }
  return 0;
}

bool has_section(std::string_view note, const std::string& name) {
  const std::vector<Section> sections = sections_of(note);
  return std::any_of(sections.begin(), sections.end(),
                     [&](const Section& section) { return section.slug == section_slug(name); });
}

std::string seen_text(const Finding& finding) {
  std::string text;
  for (const std::string& tool : finding.tools) text += (text.empty() ? "" : ", ") + tool;
  if (finding.cases.empty()) return text;
  const std::string first = " in " + finding.cases.front();
  if (finding.cases.size() == 1) return text + first;
  return text + first + " and " + counted(finding.cases.size() - 1, "other case");
}

std::string finding_text(std::size_t number,
                         const Finding& finding,
                         const Scene& scene,
                         std::string_view note,
                         const Paint& paint) {
  std::string text = paint.strong(wrapped("  " + padded(std::to_string(number), kIndent - 2),
                                          finding.kind + ": " + finding.sentence));
  for (const std::string& detail : finding.details) {
    text += wrapped(std::string(kIndent, ' '), without_control_bytes(detail));
  }
  const std::string id = scene.stage.id;
  const int line = line_in(source_name(scene.stage, scene.side), finding);
  const std::string region = region_at(scene.source, line);
  if (!region.empty()) {
    text += labelled("code", source_name(scene.stage, scene.side) + ":" + std::to_string(line) +
                                 " region " + region);
    const std::string section = region.substr(region.find('.') + 1);
    if (has_section(note, section)) text += labelled("notes", "drill notes " + id + " " + section);
  }
  text += labelled("meaning", "drill explain " + code_of(finding.kind));
  text += labelled("seen", seen_text(finding));
  if (!finding.cases.empty()) {
    text += labelled("again", scene.again + " --case " + shell_quoted(finding.cases.front()));
  }
  return text;
}

}  // namespace

std::vector<Finding> findings_of_fault(std::string_view fault) {
  std::vector<Finding> findings;
  for (const std::string& line : split_lines(fault)) {
    if (line.empty()) continue;
    if (line.front() == ' ') {
      if (!findings.empty()) add_detail(line, findings.back());
      continue;
    }
    const std::size_t colon = line.find(": ");
    Finding finding;
    finding.kind = colon == std::string::npos ? "fault" : line.substr(0, colon);
    finding.sentence = colon == std::string::npos ? line : line.substr(colon + 2);
    findings.push_back(finding);
  }
  return findings;
}

void add_finding(std::vector<Finding>& findings, const Finding& finding) {
  const auto same = [&finding](const Finding& known) {
    if (!same_kind(known.kind, finding.kind)) return false;
    // Not every tool can tell where a loop never ends, or a signal came from.
    const bool unplaced = known.places.empty() || finding.places.empty();
    if (unplaced && (known.kind == "hang" || known.kind == "memory fault")) return true;
    if (known.places.empty() && finding.places.empty()) return known.sentence == finding.sentence;
    std::vector<std::string> a = known.places;
    std::vector<std::string> b = finding.places;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    return a == b;
  };
  const auto known = std::find_if(findings.begin(), findings.end(), same);
  if (known == findings.end()) {
    findings.push_back(finding);
    return;
  }
  if (known->places.empty()) {
    known->places = finding.places;
    known->details = finding.details;
  }
  add_once(known->cases, finding.cases);
  add_once(known->tools, finding.tools);
}

std::string region_at(std::string_view source, int line) {
  std::string region;
  int number = 0;
  for (const std::string& text : split_lines(source)) {
    if (++number >= line) return line > 0 ? region : "";
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    const std::string code = text.substr(first);
    if (code.rfind("// BEGIN ", 0) == 0) {
      const std::string label = code.substr(9);
      region = label.substr(0, label.find(' '));
    }
    if (code.rfind("// END ", 0) == 0) region.clear();
  }
  return {};
}

std::string findings_text(const std::vector<Finding>& findings,
                          const Scene& scene,
                          std::string_view note,
                          const Paint& paint) {
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    text += "\n" + finding_text(i + 1, findings[i], scene, note, paint);
  }
  return text;
}

}  // namespace moe::driver
