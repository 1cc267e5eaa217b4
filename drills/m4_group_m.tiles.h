// m4_group_m.tiles.h: which tile for which problem, as data. pick_tile reads these tables; `drill
// tune` measures the candidates on your GPU and writes the line of kTunedTiles.
#pragma once

namespace moe {

// How one GEMM is cut: BLOCK_N columns, steps of BLOCK_K along D, GROUP_M rows of tiles in a group.
struct GemmTile {
  int block_n;
  int block_k;
  int group_m;
};

// How the layer is cut. Both GEMMs share align's table, so there is one block_m.
struct Tile {
  int block_m;
  GemmTile gemm1;
  GemmTile gemm2;
};

// The tiles that grouped_gemm is compiled for. SwiGLU in GEMM1 makes half of the columns gate, half
// up.
struct TileShape {
  int block_m;
  int block_n;
  int block_k;
};
inline constexpr TileShape kTileShapes[] = {
    {16, 32, 64},   {32, 64, 64},   {64, 128, 64},  {64, 256, 32},
    {128, 128, 32}, {128, 128, 64}, {128, 256, 64},
};

// Fewer tokens than experts: almost every row stands alone, and reading the weights is all there is
// to do. Small tiles make many blocks, each expert has one row of tiles, and order cannot help.
inline constexpr Tile kFewTokensTile = {16, {32, 64, 1}, {32, 64, 1}};

// The choice where nothing was measured: the last line whose rows_per_expert <= T*K/E.
struct DefaultTile {
  int rows_per_expert;
  Tile tile;
};
inline constexpr DefaultTile kDefaultTiles[] = {
    {0, {16, {32, 64, 1}, {32, 64, 1}}},
    {12, {32, {64, 64, 4}, {64, 64, 4}}},
    {40, {64, {128, 64, 8}, {128, 64, 8}}},
    {160, {128, {128, 64, 8}, {128, 64, 8}}},
};

// What `drill tune` measured, in ascending order; the comments say on which GPU and when. Used
// where E, K, H and I are equal and num_tokens is the largest that does not exceed T.
struct TunedTile {
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
  int num_tokens;
  Tile tile;
};
inline constexpr TunedTile kTunedTiles[] = {
    // NVIDIA H200, 2026-11-29
    {8, 2, 4096, 14336, 4096, {128, {128, 64, 16}, {256, 64, 2}}},
    // NVIDIA H200, 2026-11-29
    {64, 8, 2048, 768, 4096, {128, {128, 64, 16}, {128, 64, 8}}},
};

}  // namespace moe
