// The tables of m9, in which few tokens are decoded.
#pragma once

#include <string>

namespace moe::content {

std::string m9_example();

}  // namespace moe::content
