// The share of a stage's points for a cheap kernel (grading.toml, [cost]): the cost card of
// driver/cost/ instead of a clock, so that a class without a GPU can be graded on it.
//
// What is counted comes from a process that the submission's code runs in, as the timing of a GPU
// does: a kernel that looks for the counters in its own process can change them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "driver/cost/measure.h"
#include "driver/grade/recipe.h"
#include "driver/grade/result.h"
#include "driver/grade/scheme.h"
#include "driver/grade/workshop.h"

namespace moe::grade {

class CostGate {
 public:
  CostGate(const driver::Course& course,
           const Scheme& scheme,
           Confinement& confinement,
           const Workshop& workshop)
      : course_(course), scheme_(scheme), confinement_(confinement), workshop_(workshop) {}

  // Builds the traced emulator, and takes the card of our own solution of every stage that has a
  // case for one. Throws std::runtime_error where that fails.
  void prepare(const std::vector<const Stage*>& stages, const std::filesystem::path& folder);

  // Adds the figures of a submission that passed, and the reference's. `folder` is its own.
  void take(const Stage& stage,
            const std::string& source,
            const std::filesystem::path& folder,
            int worker,
            StageResult& result) const;

 private:
  CostFigures measure(const Stage& stage,
                      const std::string& source,
                      const std::filesystem::path& folder,
                      int worker) const;

  const driver::Course& course_;
  const Scheme& scheme_;
  Confinement& confinement_;
  const Workshop& workshop_;
  std::map<std::string, Recipe> recipes_;  // by stem
  std::map<std::string, CostFigures> references_;
};

}  // namespace moe::grade
