// The hint ladders in content/mN_topic.hints.md: for each region a few steps, one tells more than
// the one before.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace moe::driver {

struct Ladder {
  std::string region;              // "m2.gather"
  std::vector<std::string> steps;  // markdown, without the numbers
};

std::vector<Ladder> ladders_of(std::string_view markdown);

}  // namespace moe::driver
