// The tables of the stages that need capability 9.0.
#pragma once

#include <string>

namespace moe::content {

std::string m6_example();
std::string m7_example();
std::string m8_example();
std::string m10_example();

}  // namespace moe::content
