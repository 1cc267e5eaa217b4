// fp8_tile.h: what m5 is given: bf16 as fp32, tiles of codes in shared memory, m4's order of tiles.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

namespace moe {

// Four bf16. Each is the upper half of a float.
__device__ __forceinline__ float4 values_of(uint2 raw) {
  return make_float4(__uint_as_float(raw.x << 16), __uint_as_float(raw.x & 0xffff0000u),
                     __uint_as_float(raw.y << 16), __uint_as_float(raw.y & 0xffff0000u));
}

inline constexpr int kTileDepth = 128;  // codes in a row of a tile
inline constexpr int kCodeChunk = 16;   // codes in 16 bytes: one cp.async, one row for ldmatrix
inline constexpr int kCodeChunks = kTileDepth / kCodeChunk;

// Chunk `chunk` of a row of a tile. The XOR spreads the same chunk of eight rows, which ldmatrix
// reads at once, over all banks. (TMA calls this layout a swizzle of 128 bytes.)
__device__ __forceinline__ __nv_fp8_e4m3* chunk_of(__nv_fp8_e4m3 (*tile)[kTileDepth],
                                                   int row,
                                                   int chunk) {
  return &tile[row][(chunk ^ row % kCodeChunks) * kCodeChunk];
}

// The tile (x: pid_m, y: pid_n) that program `pid` computes, in m4's order: groups of group_m rows
// of tiles, each walked column by column.
__device__ __forceinline__ int2 tile_of(int pid, int num_pid_m, int num_pid_n, int group_m) {
  const int first_m = pid / (group_m * num_pid_n) * group_m;
  const int rows = num_pid_m - first_m < group_m ? num_pid_m - first_m : group_m;
  const int pid_in_group = pid % (group_m * num_pid_n);
  return make_int2(first_m + pid_in_group % rows, pid_in_group / rows);
}

}  // namespace moe
