#include "diagnosis.h"

#include <algorithm>

#include "models.h"
#include "suite.h"

namespace moe::judge {

void Diagnosis::add(const std::string& case_name, const Verdict& verdict, bool composed) {
  ++failures_;
  // A failure without a name counts too: a mistake that explains one case of twenty is not the one.
  if (composed && verdict.code.empty()) return;
  std::vector<Verdict> all = {verdict};
  all.front().also.clear();
  for (const Mistake& mistake : verdict.also) {
    all.push_back(wrong(mistake, {}));
    all.back().state = verdict.state;
  }
  for (const Verdict& one : all) {
    auto known = std::find_if(named_.begin(), named_.end(),
                              [&](const Named& n) { return n.verdict.code == one.code; });
    if (known == named_.end()) known = named_.insert(known, {one, {}, true});
    known->cases.push_back(case_name);
    const bool first = one.code == verdict.code;
    known->only_aside = known->only_aside && composed && !first;
  }
}

bool Diagnosis::worth_trying(const Mistake& mistake) const {
  if (failures_ < kFailuresTriedInFull) return true;
  return std::any_of(named_.begin(), named_.end(),
                     [&](const Named& n) { return n.verdict.code == mistake.code; });
}

std::vector<Diagnosis::Named> Diagnosis::best(bool whole) const {
  const auto first = std::max_element(
      named_.begin(), named_.end(),
      [](const Named& a, const Named& b) { return a.cases.size() < b.cases.size(); });
  if (first == named_.end()) return {};
  std::vector<Named> equals = {*first};
  std::copy_if(first + 1, named_.end(), std::back_inserter(equals), [&](const Named& other) {
    return other.cases == first->cases && !(whole && other.only_aside);
  });
  return equals;
}

bool worth_trying(const Mistake& mistake) {
  return Suite::get().diagnosis().worth_trying(mistake);
}

}  // namespace moe::judge
