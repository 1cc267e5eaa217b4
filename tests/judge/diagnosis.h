// diagnosis.h: which mistake a run as a whole shows. One case may leave open which of two mistakes
// it saw; the others usually settle it.
#pragma once

#include <string>
#include <vector>

#include "verdict.h"

namespace moe::judge {

class Diagnosis {
 public:
  // A mistake and the cases that it explains. A failure that nothing explains has no code.
  struct Named {
    Verdict verdict;
    std::vector<std::string> cases;
    bool only_aside = true;  // no case named it first, and none of a function of its own named it
  };

  // Notes a failed case. `composed`: made of functions that have cases of their own, so that a
  // failure without a name says nothing against what those name.
  void add(const std::string& case_name, const Verdict& verdict, bool composed);

  // Models cost time, and after a few failures it is known what to look for: false for a mistake
  // that none of the first failed cases named.
  bool worth_trying(const Mistake& mistake) const;

  // What explains most cases, the first found of equals; behind it those that explain exactly the
  // same cases, which this run can't tell from it. Empty where nothing failed. In a `whole` run the
  // functions of a composed case ran too: what only composed cases name besides something else
  // would have shown in them.
  std::vector<Named> best(bool whole) const;

 private:
  static constexpr int kFailuresTriedInFull = 6;

  std::vector<Named> named_;
  int failures_ = 0;
};

}  // namespace moe::judge
