// One sentence in plain words for the compiler errors that everybody meets on the first day.
#pragma once

#include <string>
#include <string_view>

namespace moe::driver {

struct BuildFailure {
  std::string_view compiler_text;
  std::string_view stem;      // "m2_grouped_gemm"
  std::string_view source;    // text of the file that did not compile
  std::string_view contract;  // text of drills/STEM.h
};

// About the first error that is known, or "".
std::string advice_for(const BuildFailure& failure);

}  // namespace moe::driver
