// The one example that all notes carry: T = 4, K = 2, E = 3. Its tables are printed from the
// oracles of the tests, so a note cannot say what the tests do not.
#pragma once

#include <string>
#include <string_view>

#include "m4_group_m_oracle.h"

namespace moe::content {

// The Markdown of the tables of one stage ("m1", "m2", ...), or "" for another name.
std::string tiny_example(std::string_view stage);

struct TileLoads {
  int a = 0;
  int w = 0;
};

// Panels of one expert loaded into a cache of four that drops the one used longest ago.
TileLoads tile_loads(const oracle::TileGrid& grid);

}  // namespace moe::content
