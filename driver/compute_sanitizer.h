// compute-sanitizer around a runner, and its report in the words of the emulator.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "driver/finding.h"

namespace moe::driver {

inline constexpr const char* kSanitizerTools[] = {"memcheck", "racecheck", "initcheck",
                                                  "synccheck"};

// In PATH, else beside nvcc; empty when nowhere.
std::filesystem::path find_compute_sanitizer(const std::filesystem::path& nvcc);

// Writes a script that runs the runner under a tool; its report goes to `log`. False when it could
// not be written.
bool write_sanitizer_script(const std::filesystem::path& script,
                            const std::filesystem::path& sanitizer,
                            const std::string& tool,
                            const std::filesystem::path& log,
                            const std::filesystem::path& runner);

// What the report says, each pair of lines once. Paths below `root` are told relative to it.
std::vector<Finding> findings_of_sanitizer(std::string_view log, const std::filesystem::path& root);

// A report that was cut off has no summary: then nothing can be said.
bool is_complete_report(std::string_view log);

}  // namespace moe::driver
