// fuzz.h: random legal shapes and random broken rules, for as long as one likes. What fails is made
// as small as it goes and printed with the command that repeats it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "suite.h"

namespace moe::judge {

// Keeps `text` for the rest of the process: the cases of the stages hold plain pointers.
const char* kept(const std::string& text);

using Genes = std::vector<int>;

// The numbers in a case's name; nothing where it is the name of no case of the target.
std::optional<Genes> genes_in(const FuzzTarget& target, const std::string& case_name);

// A case that failed, with its numbers as low as they go while it fails in the same way.
CaseResult shrink(const FuzzTarget& target, Genes genes, CaseResult result);

// Runs random cases of all targets for about `seconds`; the result is the exit code of the suite.
void fuzz(const std::vector<FuzzTarget>& targets, double seconds);

// Runs the case of this name; false where it is the name of no case.
bool run_fuzz_case(const std::vector<FuzzTarget>& targets, const std::string& case_name);

}  // namespace moe::judge
