// What the tests of align and of route share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "judge/suite.h"
#include "m1_align_bugs.h"

namespace moe {

// Of all values of an output: how many are equal, and how many of those that are wrong.
struct Share {
  int all = 0, agreed = 0, wrong = 0, explained = 0;
  void add(int32_t got, int32_t want, int32_t said) {
    if (said == bugs::kAny) return;
    ++all;
    agreed += got == said ? 1 : 0;
    wrong += got != want ? 1 : 0;
    explained += got != want && got == said ? 1 : 0;
  }
  bool names_it() const {
    return wrong > 0 && agreed * 100 >= all * 99 && explained * 100 >= wrong * 99;
  }
};

// GoogleTest names an instantiation by its prefix: one for each group of cases.
template <class Case, size_t N>
std::vector<Case> cases_of(const Case (&all)[N], const std::string& group) {
  std::vector<Case> chosen;
  for (const Case& c : all) {
    if (c.group == group) chosen.push_back(c);
  }
  return chosen;
}
inline const auto name_of_case = [](const auto& info) { return std::string(info.param.name); };

// Random cases of route.
judge::FuzzTarget random_routes();

}  // namespace moe
