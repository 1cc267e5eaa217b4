// Reads the output of a GoogleTest program, also of one that died half way.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct Tally {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;

  void add(const Tally& other);
  std::string text() const;  // "5 passed, 0 failed, 1 skipped"
};

struct GtestResult {
  Tally tally;
  std::vector<std::string> failures;  // names of tests
};

// A test that began and has no end counts as failed.
GtestResult count_gtest(std::string_view output);

}  // namespace moe::driver
