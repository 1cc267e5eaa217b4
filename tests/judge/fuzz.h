// fuzz.h: random legal shapes and random broken rules, for as long as one likes. What fails is made
// as small as it goes and printed with the command that repeats it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "suite.h"

namespace moe::judge {

// Keeps `text` for the rest of the process: the cases of the stages hold plain pointers.
const char* kept(const std::string& text);

// Runs random cases of all targets for about `seconds`; the result is the exit code of the suite.
void fuzz(const std::vector<FuzzTarget>& targets, double seconds);

// Runs the case of this name; false where it is the name of no case.
bool run_fuzz_case(const std::vector<FuzzTarget>& targets, const std::string& case_name);

}  // namespace moe::judge
