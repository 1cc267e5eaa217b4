// What a kernel file may not do, said as messages. These rules explain; they do not protect: the
// wall around the child (confine.h) and the judge's own process do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moe::grade {

struct RuleBreak {
  int line = 0;  // 0: of the whole file
  std::string sentence;
};

// The text alone: inline assembly, pragmas, includes out of the tree, line directives.
std::vector<RuleBreak> check_source(std::string_view text, const std::string& file);

// What the compiler has read, from its dependency file: nothing but `allowed` folders.
std::vector<RuleBreak> check_depends(std::string_view depends,
                                     const std::vector<std::string>& allowed);

// A symbol of the compiled file, as `nm` prints it.
struct Symbol {
  char type = 'U';
  std::string name;
};
std::vector<Symbol> parse_symbols(std::string_view nm_output);

struct SymbolCheck {
  std::vector<RuleBreak> broken;
  std::vector<std::string> to_hide;  // global names that are not the learner's to define
};

// `harness`: what is defined around the file; `given`: what our own file uses, through drills/, and
// everybody may. Both sorted.
SymbolCheck check_symbols(const std::vector<Symbol>& symbols,
                          const std::vector<std::string>& harness,
                          const std::vector<std::string>& given,
                          const std::string& file);

}  // namespace moe::grade
