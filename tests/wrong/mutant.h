// mutant.h: kernels with one declared fault, made from the solutions so that they can't drift.
//
// tests/wrong/mN_topic.txt lists them, tests/alternative/mN_topic.txt those that are different but
// right. Blocks of lines with a blank line between them; '#' starts a comment line:
//   name: flat_row
//   region: m2.gather
//   expect: wrong M2-FLATROW          state and code that the run says, or: pass
//   or: crash M4-WIDTH               optional: what no case can tell from it
//   check: tiny/t4k2                  optional: a case that shows it alone; no other is run then
//   mistake: GEMM1 row is `flat_id`   optional, both together and with check: a line of the note's
//   see: NaN from flat id T on        table of pitfalls (pitfalls.h)
//   replace: p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id
//   with: flat_id
//   set: full                         optional: only the full set can show it
// `replace` must occur exactly once in the region ("file" is the whole file; any white space
// matches any other); several replace or with lines are one text. A block may hold more such pairs,
// each begun by its own region line.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace moe::wrong {

struct Edit {
  std::string region;
  std::string replace;
  std::string with;
};

struct Mutant {
  std::string name;
  std::string expect;
  std::string or_else;
  std::string mistake;
  std::string see;
  std::string check;
  bool full = false;
  std::vector<Edit> edits;
};

class ListError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws ListError, with file and line, for a block that is not as above.
std::vector<Mutant> read_list(const std::string& path);

// The solution with the edits applied. Throws ListError where one does not fit any more.
std::string apply(const Mutant& mutant, std::string solution);

}  // namespace moe::wrong
