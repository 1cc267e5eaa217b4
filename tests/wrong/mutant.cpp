#include "mutant.h"

#include <cctype>
#include <fstream>

namespace moe::wrong {
namespace {

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

// The length of the text at `position` that matches `pattern`, white space counting as equal; 0:
// none.
size_t match_at(std::string_view text, size_t position, std::string_view pattern) {
  size_t i = position;
  for (size_t k = 0; k < pattern.size();) {
    if (is_space(pattern[k])) {
      if (i >= text.size() || !is_space(text[i])) return 0;
      while (k < pattern.size() && is_space(pattern[k])) ++k;
      while (i < text.size() && is_space(text[i])) ++i;
    } else {
      if (i >= text.size() || text[i] != pattern[k]) return 0;
      ++i;
      ++k;
    }
  }
  return i - position;
}

void append(std::string& text, const std::string& line) {
  if (!text.empty()) text += '\n';
  text += line;
}

void finish(std::vector<Mutant>& mutants, Mutant& mutant, const std::string& where) {
  if (mutant.name.empty() && mutant.edits.empty()) return;
  if (mutant.name.empty() || mutant.expect.empty() || mutant.edits.empty()) {
    throw ListError(where + ": a block needs name, expect, region, replace and with");
  }
  for (const Edit& edit : mutant.edits) {
    if (edit.replace.empty())
      throw ListError(where + ": an edit of " + mutant.name + " replaces nothing");
  }
  const bool told = !mutant.mistake.empty();
  if (told == mutant.see.empty() || (told && mutant.check.empty())) {
    throw ListError(where + ": " + mutant.name +
                    " needs mistake, see and check together, or check alone, or none of them");
  }
  mutants.push_back(std::move(mutant));
  mutant = {};
}

// Where a marker stands whose label ends there: m7.gather is not m7.gather_rows.
size_t find_marker(std::string_view solution, std::string_view marker) {
  size_t at = solution.find(marker);
  while (at != std::string_view::npos && at + marker.size() < solution.size() &&
         !is_space(solution[at + marker.size()])) {
    at = solution.find(marker, at + 1);
  }
  return at;
}

}  // namespace

std::vector<Mutant> read_list(const std::string& path) {
  std::vector<Mutant> mutants;
  std::ifstream file(path);
  if (!file) throw ListError(path + ": can't be read");
  Mutant mutant;
  std::string line;
  std::string where;
  for (int number = 1; std::getline(file, line); ++number) {
    where = path + ":" + std::to_string(number);
    if (!line.empty() && line[0] == '#') continue;
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      finish(mutants, mutant, where);
      continue;
    }
    const size_t colon = line.find(':');
    const std::string key = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    value.erase(0, value.find_first_not_of(' ') == std::string::npos
                       ? value.size()
                       : value.find_first_not_of(' '));
    if (key == "name") {
      mutant.name = value;
    } else if (key == "expect") {
      mutant.expect = value;
    } else if (key == "or") {
      mutant.or_else = value;
    } else if (key == "mistake") {
      mutant.mistake = value;
    } else if (key == "see") {
      mutant.see = value;
    } else if (key == "check") {
      mutant.check = value;
    } else if (key == "set" && value == "full") {
      mutant.full = true;
    } else if (key == "region") {
      mutant.edits.push_back({value, "", ""});
    } else if ((key == "replace" || key == "with") && !mutant.edits.empty()) {
      append(key == "with" ? mutant.edits.back().with : mutant.edits.back().replace, value);
    } else {
      throw ListError(where + ": unknown key, or an edit before its region: " + line);
    }
  }
  finish(mutants, mutant, where);
  return mutants;
}

std::string apply(const Mutant& mutant, std::string solution) {
  for (const Edit& edit : mutant.edits) {
    const std::string begin = "// BEGIN " + edit.region;
    const std::string end = "// END " + edit.region;
    size_t from = 0;
    size_t to = solution.size();
    if (edit.region != "file") {  // code outside every region
      from = find_marker(solution, begin);
      to = find_marker(solution, end);
      if (from == std::string::npos || to == std::string::npos) {
        throw ListError(mutant.name + ": there is no region " + edit.region);
      }
      from = solution.find('\n', from);
    }
    size_t found = std::string::npos;
    size_t length = 0;
    for (size_t i = from; i < to; ++i) {
      const size_t here = match_at(solution, i, edit.replace);
      if (here == 0) continue;
      if (found != std::string::npos) {
        throw ListError(mutant.name + ": stands more than once in " + edit.region + ": " +
                        edit.replace);
      }
      found = i;
      length = here;
    }
    if (found == std::string::npos) {
      throw ListError(mutant.name + ": does not stand in " + edit.region + ": " + edit.replace);
    }
    solution.replace(found, length, edit.with);
  }
  return solution;
}

}  // namespace moe::wrong
