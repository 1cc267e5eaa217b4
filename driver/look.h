// The words of --map and --print: a picture of which values are wrong, and how one value is formed.
#pragma once

#include <cstddef>
#include <string>

#include "driver/report.h"
#include "driver/terminal.h"

namespace moe::driver {

// At most `width` characters wide and kMapRows lines high; a character stands for several values
// where the output is larger. "" for an empty map.
std::string map_text(const WrongMap& map, const Paint& paint, std::size_t width = columns());

// What a case was asked to show besides its verdict.
std::string look_text(const CaseRecord& one, const Paint& paint);

}  // namespace moe::driver
