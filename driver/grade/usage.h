// Thrown where the instructor's own input is wrong: options, grading.toml, the folder of
// submissions.
#pragma once

#include <stdexcept>

namespace moe::grade {

class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace moe::grade
