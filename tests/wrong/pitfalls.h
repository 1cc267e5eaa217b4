// pitfalls.h: the table of pitfalls in a stage's note, made from the list of wrong kernels, so that
// each line of it is a kernel that really is rejected in those words.
//
// The note holds two marker lines; what stands between them is generated:
//   <!-- pitfalls: from tests/wrong/mN_topic.txt -->
//   <!-- end of pitfalls -->
#pragma once

#include <string>
#include <vector>

#include "mutant.h"

namespace moe::wrong {

// A Markdown table, one line for each mutant with `mistake`, `see` and `check`, in their order.
// Mutants that say the same but for the code share a line.
std::string pitfalls_table(const std::vector<Mutant>& mutants);

// `note` with `table` between its markers. Throws ListError where they are missing.
std::string with_pitfalls(const std::string& note, const std::string& table);

}  // namespace moe::wrong
