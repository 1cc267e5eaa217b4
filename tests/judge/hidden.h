// hidden.h: cases that exist only where an instructor's secret is set (`drill grade --secret`):
// each random case again, in another shape that the secret chooses. Group "hidden".
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "random.h"

namespace moe::judge {

inline constexpr const char* kSecretVariable = "DRILL_SECRET";

// 0: none. Read once, before stage_main() takes it out of the environment.
inline uint64_t secret() {
  static const uint64_t value = [] {
    const char* text = std::getenv(kSecretVariable);
    return text == nullptr ? uint64_t{0} : std::strtoull(text, nullptr, 0);
  }();
  return value;
}

// `vary` changes the sizes of a case; what it leaves stays as in the random case.
template <class Cases, class Vary>
auto hidden_cases(const Cases& all, Vary vary) {
  using Case = std::decay_t<decltype(*std::begin(all))>;
  static std::deque<std::string> names;  // cases point to them
  std::vector<Case> hidden;
  for (const Case& one : all) {
    if (secret() == 0 || std::string(one.group) != "random") continue;
    Random random(mix(secret(), one.name));
    Case varied = one;
    vary(varied, random);
    names.push_back(std::string(one.name) + "_varied");
    varied.group = "hidden";
    varied.name = names.back().c_str();
    hidden.push_back(varied);
  }
  return hidden;
}

}  // namespace moe::judge
