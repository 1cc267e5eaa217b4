// Builds the runner of one submission's stage: checks the text, compiles it alone, checks its
// symbols, hides what is not its to define, links it with what was built before.
#pragma once

#include <filesystem>
#include <string>

#include "driver/grade/confine.h"
#include "driver/grade/recipe.h"
#include "driver/grade/result.h"
#include "driver/process.h"

namespace moe::grade {

struct BuildLimits {
  double seconds = 60;
  double memory_gib = 3;
};

struct BuiltRunner {
  Mark mark = Mark::kFault;  // kPass: there is a runner
  std::string sentence;
  std::string text;  // what the compiler said
  std::filesystem::path runner;
  double seconds = 0;
};

class Workshop {
 public:
  // `clean_tree` holds the headers that a kernel may include; see make_clean_tree.
  Workshop(const Confinement& confinement,
           std::filesystem::path clean_tree,
           const BuildLimits& limits)
      : confinement_(confinement), clean_tree_(std::move(clean_tree)), limits_(limits) {}

  // `folder` is the submission's own, empty.
  BuiltRunner build(const Recipe& recipe,
                    const std::string& source,
                    const std::filesystem::path& folder,
                    int worker) const;

 private:
  struct Step;
  bool compile(Step& step) const;
  bool check(Step& step) const;
  bool link(Step& step) const;
  driver::Outcome run(const Step& step,
                      const std::vector<std::string>& command,
                      const std::vector<std::filesystem::path>& readable) const;

  const Confinement& confinement_;
  std::filesystem::path clean_tree_;
  BuildLimits limits_;
};

// Copies drills/ and the emulator's headers, and nothing else: no solutions, no tests.
void make_clean_tree(const driver::Course& course, const std::filesystem::path& folder);

}  // namespace moe::grade
