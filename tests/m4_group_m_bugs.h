// Bug models of m4_group_m: in which order each known mistake would visit the tiles.
#pragma once

#include <functional>
#include <vector>

#include "judge/models.h"
#include "m4_group_m_oracle.h"

namespace moe::bugs {

// What a mistaken tile_of returns.
struct OrderModel {
  judge::Mistake mistake;
  std::function<oracle::TilePlace(int pid, const oracle::TileGrid& grid)> tile_of;
};
const std::vector<OrderModel>& order_models();

// Mistakes around tile_of, in the kernel.
extern const judge::Mistake kCapacityOrder;     // groups of the worst routing's rows
extern const judge::Mistake kExitMissing;       // programs behind the last tile stay
extern const judge::Mistake kGroupWidth;        // wrong groups, or a division by zero
extern const judge::Mistake kNoRows;            // tile_of divides by zero
extern const judge::Mistake kHostDiffers;       // tile_of on the host is another function
extern const judge::Mistake kPoorOrder;         // every tile once, but the cache does not like it
extern const judge::Mistake kEpilogueOffset32;  // an offset of the GEMM in 32 bits

// Mistakes of the GEMM's given parts.
const std::vector<judge::MatrixModel<oracle::EpilogueProblem>>& epilogue_models();

// What a mistaken pick_tile returns.
struct PickModel {
  judge::Mistake mistake;
  std::function<Tile(
      int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size)>
      pick_tile;
};
const std::vector<PickModel>& pick_models();

}  // namespace moe::bugs
