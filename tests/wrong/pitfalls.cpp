#include "pitfalls.h"

#include <algorithm>

namespace moe::wrong {
namespace {

struct Line {
  std::string mistake;
  std::string see;
  std::vector<std::string> codes;
  std::string check;
};

// "wrong M2-FLATROW" -> "M2-FLATROW"; "hang" -> "hang".
std::string code_of(const Mutant& mutant) {
  const size_t space = mutant.expect.find(' ');
  return space == std::string::npos ? mutant.expect : mutant.expect.substr(space + 1);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

std::string pitfalls_table(const std::vector<Mutant>& mutants) {
  std::vector<Line> lines;
  for (const Mutant& mutant : mutants) {
    if (mutant.mistake.empty()) continue;
    const std::string code = code_of(mutant);
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& line) {
      return line.mistake == mutant.mistake && line.see == mutant.see;
    });
    if (same == lines.end()) {
      lines.push_back({mutant.mistake, mutant.see, {code}, mutant.check});
    } else {
      same->codes.push_back(code);
    }
  }
  std::string table = "| mistake | what you see | `drill` says | case |\n|---|---|---|---|\n";
  for (const Line& line : lines) {
    table += "| " + line.mistake + " | " + line.see + " | " + joined(line.codes) + " | `" +
             line.check + "` |\n";
  }
  return table;
}

std::string with_pitfalls(const std::string& note, const std::string& table) {
  const std::string begin = "<!-- pitfalls:";
  const std::string end = "<!-- end of pitfalls -->";
  const size_t marker = note.find(begin);
  const size_t last = note.find(end);
  if (marker == std::string::npos || last == std::string::npos || last < marker) {
    throw ListError("the markers of the table of pitfalls are missing");
  }
  const size_t first = note.find('\n', marker) + 1;
  return note.substr(0, first) + "\n" + table + "\n" + note.substr(last);
}

}  // namespace moe::wrong
