// Scripts that complete `drill` in a shell, made from the table of verbs.
#pragma once

#include <string>
#include <vector>

namespace moe::driver {

struct VerbWords {
  std::string name;
  std::string summary;
  bool takes_stage = false;          // its first argument is a stage
  std::vector<std::string> options;  // "--full", ...
};

// For bash or zsh; "" for any other shell. `stages` stands for the stages that are verbs.
std::string completion_script(const std::string& shell,
                              const std::vector<VerbWords>& verbs,
                              const VerbWords& stages);

}  // namespace moe::driver
