// What the verbs that measure on a GPU share. driver/bench.cpp
#pragma once

#include <string>
#include <vector>

#include "driver/backend.h"
#include "driver/course.h"

namespace moe::driver {

// Builds the targets that a measurement needs; an exit code, or 0.
int prepare_measurement(const Course& course,
                        const Backend& backend,
                        const std::vector<std::string>& host,
                        const std::vector<std::string>& cuda);

// Passes on what the program prints, as it prints it; returns its exit code.
int run_and_show(const std::vector<std::string>& arguments);

}  // namespace moe::driver
