// `drill explain CODE`: what a diagnosis means, from the test programs, which make the diagnoses.
#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <regex>

#include "driver/build.h"
#include "driver/markdown.h"
#include "driver/process.h"
#include "driver/report.h"
#include "driver/verbs.h"

namespace moe::driver {
namespace {

struct Mistake {
  std::string code;
  std::string region;
  std::string note;
  std::string sentence;
};

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// What the test program of a stage knows; builds it where it must. Empty when it cannot be asked.
std::vector<Mistake> mistakes_of(const Course& course, const Stage& stage) {
  const std::string target = std::string(stage.stem) + "_test";
  if (!std::filesystem::exists(test_path(course, stage))) {
    say("building the tests of " + std::string(stage.id) + " (once) ...\n");
  }
  if (!build_targets(course, "host", {target}, target + ".log").done) return {};
  Command command;
  command.arguments = {test_path(course, stage), "--mistakes"};
  command.limit_s = 20;
  std::vector<Mistake> mistakes;
  for (const std::string& line : split_lines(run_process(command).output)) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded()) continue;
    mistakes.push_back({json.value("code", ""), json.value("region", ""), json.value("note", ""),
                        json.value("sentence", "")});
  }
  return mistakes;
}

// Faults of the emulator, "MISSING-WAIT", from the table of kinds in its page.
std::string emulator_kind(const Course& course, const std::string& code) {
  for (const std::string& line : split_lines(read_file(course.root / "emulator/README.md"))) {
    const std::size_t bar = line.find(" | ");
    if (line.rfind("| ", 0) != 0 || bar == std::string::npos) continue;
    const std::string kinds = line.substr(2, bar - 2);
    for (std::size_t begin = 0; begin < kinds.size();) {
      const std::size_t end = std::min(kinds.find(", ", begin), kinds.size());
      std::string kind = upper(kinds.substr(begin, end - begin));
      std::replace(kind.begin(), kind.end(), ' ', '-');
      const std::size_t last = line.rfind(" |");
      if (kind == code) return line.substr(bar + 3, last - bar - 3);
      begin = end + 2;
    }
  }
  return {};
}

// Faults that end the process stand there in a sentence: "... **hang** (2 s of CPU time ...)".
std::string emulator_death(const Course& course, const std::string& code) {
  static const std::regex kKind(R"(\*\*([a-z ]+)\*\*(?: \(([^;)]*))?)");
  const std::string page = read_file(course.root / "emulator/README.md");
  for (std::sregex_iterator at(page.begin(), page.end(), kKind), end; at != end; ++at) {
    std::string kind = upper((*at)[1].str());
    std::replace(kind.begin(), kind.end(), ' ', '-');
    if (kind != code) continue;
    return (*at)[1].str() + ((*at)[2].matched ? ", " + (*at)[2].str() : "");
  }
  return {};
}

// Where to look for a mistake that any stage can make: "| RACE | between ... |" of testing.md.
std::string place_of_general(const Course& course, const std::string& code) {
  const std::string table = "| code | where to look |";
  const std::string page = read_file(course.root / "content/testing.md");
  const std::size_t start = page.find(table);
  const std::string row = "\n| " + code + " | ";
  const std::size_t at = start == std::string::npos ? start : page.find(row, start);
  if (at == std::string::npos) return {};
  const std::size_t from = at + row.size();
  return page.substr(from, page.find(" |\n", from) - from);
}

void say_mistake(const Course& course,
                 const Mistake& mistake,
                 const Stage* stage,
                 const Paint& paint) {
  say(paint.strong(mistake.code) + "\n");
  say(wrapped("  ", mistake.sentence));
  if (stage == nullptr) {
    const std::string place = place_of_general(course, mistake.code);
    if (!place.empty()) say(wrapped("  look    ", place));
    say("  notes   content/testing.md\n");
    return;
  }
  if (!mistake.region.empty()) {
    say("  code    " + source_name(*stage, "mine") + " region " + mistake.region + "\n");
  }
  if (!mistake.note.empty()) {
    say("  notes   drill notes " + std::string(stage->id) + " " + mistake.note + "\n");
  }
  if (!mistake.region.empty()) {
    say("  help    drill hint " + std::string(stage->id) + " " +
        mistake.region.substr(mistake.region.find('.') + 1) + "\n");
  }
}

// "M2-FLATROW" -> m2. General codes belong to no stage.
const Stage* stage_of(const std::string& code) {
  return find_stage(code.substr(0, code.find('-')));
}

}  // namespace

int explain_code(const Course& course, const std::string& code) {
  const std::string wanted = upper(code);
  const Paint paint = Paint::for_stdout();
  const Stage* stage = stage_of(wanted);
  if (stage == nullptr) {
    std::string kind = emulator_kind(course, wanted);
    if (kind.empty()) kind = emulator_death(course, wanted);
    if (!kind.empty()) {
      say(paint.strong(wanted) + "\n" +
          wrapped("  ", "The emulator stopped a kernel: " + kind + "."));
      say("  notes   emulator/README.md\n");
      return 0;
    }
  }
  std::vector<std::string> codes;
  bool found = false;
  for (const Mistake& mistake : mistakes_of(course, stage != nullptr ? *stage : kStages[0])) {
    codes.push_back(upper(mistake.code));
    if (codes.back() != wanted) continue;
    found = true;
    say_mistake(course, mistake, stage, paint);
  }
  if (found) return 0;
  const std::string near = nearest(code, codes, 1 + code.size() / 3);
  say(wrapped("drill: ", "no diagnosis is called " + shell_quoted(code) + "." +
                             (near.empty() ? "" : " Did you mean: drill explain " + near)));
  return static_cast<int>(Verdict::kUsage);
}

}  // namespace moe::driver
