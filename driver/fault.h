// Faults are reported with a program counter where no source line was at hand; this finds the line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace moe::driver {

// Replaces every line "  pc 0x1234" of a fault text by "  at FILE:LINE" of the runner, or drops it
// when addr2line is missing or knows no line.
std::string resolve_fault(std::string_view fault,
                          const std::filesystem::path& runner,
                          const std::filesystem::path& root);

// Picks from addr2line's list of inlined frames (innermost first) the first one in a stage's
// source file, else the innermost; relative to `root`; "" when no line is known.
std::string pick_frame(std::string_view frames, const std::filesystem::path& root);

}  // namespace moe::driver
