// How m8_persistent cuts a layer into tiles. Nothing in the contract says so: the tests use it only
// to say which tiles a wrong output is the fault of.
#pragma once

#include <vector>

#include "layer_oracle.h"

namespace moe::oracle {

struct PersistentTile {
  int gemm;  // 1 or 2
  int expert;
  int first;                // row of the expert's that is the tile's first
  int column;               // first of 128: of h, or of out
  std::vector<int> tokens;  // of its real rows, in order
};

// In the order of their numbers: experts in the order of work, then column tiles, then token tiles.
// (A cluster of two blocks does two of them under one number.)
std::vector<PersistentTile> persistent_tiles(const LayerProblem& p, int gemm);

}  // namespace moe::oracle
