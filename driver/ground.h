// Whether there is ground to stand on before anything is built: a folder that can be written, room
// on the disk, the tools, a learner's file that a compiler can read.
#pragma once

#include <string>
#include <string_view>

#include "driver/course.h"

namespace moe::driver {

// One sentence about what stands in the way of building, or "".
std::string ground_trouble(const Course& course);

// "CMake 3.16.3 is too old ...", or "".
std::string cmake_trouble();

// "is 10.5 MB; ...": why a source file is not worth compiling, or "".
std::string source_trouble(std::string_view source);

}  // namespace moe::driver
