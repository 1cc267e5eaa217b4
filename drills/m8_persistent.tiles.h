// m8_persistent.tiles.h: given to m8. How tiles are cut, what a block of the GEMMs holds, and m7's
// arithmetic on finished sums.
#pragma once

#include <type_traits>

#include <drills/m8_persistent.routing.h>
#include <drills/persistent.h>
#include <drills/wgmma.h>

namespace moe::DRILL_SIDE::m8 {

inline constexpr int BLOCK_K = 64;    // 128 bytes: one row of a swizzled tile
inline constexpr int kBoxRows = 128;  // rows of W in one bulk copy
inline constexpr int kWarpgroup = 128;
inline constexpr int kThreads = 3 * kWarpgroup;
inline constexpr int kGatherThreads = kWarpgroup - kWarpSize;  // all but the first warp
inline constexpr int kReportTurn = 8;  // of GEMM1, when the tile before has long been stored
inline constexpr int kConsumerWarps = 8;
inline constexpr int kColumns = 128;  // of the output, in one tile
inline constexpr int kChunk = 8;      // bf16 values in 16 bytes
inline constexpr int kSlab = 64;      // rows and columns in one bulk store

// GEMM1: 256 rows of W, 128 of gate and 128 of up, by at most 128 tokens, which are wgmma's M, and
// a unit of tokens behind them; GEMM2: 128 rows of W, wgmma's M, by at most MAX_TOKENS tokens.
template <bool GEMM1, int MAX_TOKENS>
struct SharedTiles {
  static constexpr int kWRows = GEMM1 ? 256 : 128;
  static constexpr int kTokenRows = GEMM1 ? kMaxTokens1 : MAX_TOKENS;
  static constexpr int STAGES = 196608 / ((kWRows + MAX_TOKENS) * BLOCK_K * 2);
  // Of each consumer warpgroup: the unit's room is taken from GEMM1's second one.
  static constexpr int kSlabBuffers = GEMM1 ? 1 : 2;
  __nv_bfloat16 w[STAGES][kWRows][BLOCK_K];  // swizzled, as are all tiles here
  __nv_bfloat16 tokens[STAGES][kTokenRows][BLOCK_K];
  unsigned char slabs[2][kSlabBuffers][kSlab * kSlab * 2];
  unsigned char units[GEMM1 ? 2 : 1][GEMM1 ? kUnit * kSlab * 2 : 16];  // GEMM1: one for each
  int4 tile[STAGES];  // whose data a stage holds: (expert, tokens, first row, column tile), or
                      // expert = -1 after the last tile
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
  uint64_t sent;        // next_pid, by block 0 of the cluster to both
  uint64_t read;        // of block 0: both have read it
  uint64_t job_posted;  // GEMM1: job, for the warps that gather
  uint64_t job_taken;
  uint64_t stored;  // GEMM1: by both consumers, the tile before
  int2 job;         // (first row, tokens) of their next tile
  int next_pid;
};

// The arguments of one GEMM.
struct Problem {
  const __nv_bfloat16* x;       // GEMM1
  const int32_t* sorted_token;  // GEMM1
  const Run* runs;
  const int32_t* num_tiles;  // token tiles
  int32_t* next_tile;
  int32_t* ready;
  int free_rounds;  // rounds of tiles that go to who comes first; those before are dealt in turn
  int columns;      // of the output
  int depth;        // the reduction
};

struct Tile {
  int n;       // column tile
  int tokens;  // a multiple of kUnit
  int row;     // the first, in the sorted order
  int expert;
  int ready_when;
  bool shares_w;  // GEMM1: the blocks of the cluster have the same rows of W
};

// h = silu(gate) * up for four pairs, with one reciprocal for all four: see m7. So h depends, in
// its last bits, on who shares the four: columns of one row and the row eight further on.
__device__ inline void silu_and_mul(const float (&gate)[4], const float (&up)[4], float (&h)[4]) {
  float g[4];
  float a[4];  // 1 + e^-gate
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    g[i] = max_nan(gate[i], -20.0f);
    a[i] = 1.0f + exp2_approx(g[i] * -1.4426950408889634f);
  }
  const float ab = a[0] * a[1];
  const float cd = a[2] * a[3];
  const float all = reciprocal_approx(ab * cd);
  const float of_ab = all * cd;
  const float of_cd = all * ab;
  h[0] = g[0] * up[0] * (of_ab * a[1]);
  h[1] = g[1] * up[1] * (of_ab * a[0]);
  h[2] = g[2] * up[2] * (of_cd * a[3]);
  h[3] = g[3] * up[3] * (of_cd * a[2]);
}

__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Two packed pairs of finished sums: in GEMM1 c are gates and u the ups of the same columns.
template <bool GEMM1>
__device__ inline void pack_pairs(uint32_t* pairs, const float* c, const float* u) {
  if (GEMM1) {
    const float gate[4] = {c[0], c[1], c[2], c[3]};
    const float up[4] = {u[0], u[1], u[2], u[3]};
    float h[4];
    silu_and_mul(gate, up, h);
    pairs[0] = pack(h[0], h[1]);
    pairs[1] = pack(h[2], h[3]);
  } else {
    pairs[0] = pack(c[0], c[1]);
    pairs[1] = pack(c[2], c[3]);
  }
}

// Writes a unit of tokens by this warp's 16 columns, of which c[0 .. 3] of the 64 are the thread's
// packed pairs, to 16 rows of a slab. The sums are W by tokens: stored transposed.
__device__ inline void write_unit(unsigned char* rows, const uint32_t (&pairs)[4]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize % 4;
  const int token = lane / 16 * 8 + lane % 8;
  const int chunk = (warp * 2 + lane / 8 % 2) ^ (token % 8);
  stmatrix_x4_trans(rows + token * 128 + chunk * 16, pairs);
}

// Calls f with the number of tokens, units * kUnit, as a type whose ::value is a constant: wgmma
// has an instruction for each N. At most MAX_TOKENS.
template <int MAX_TOKENS, class Function>
__device__ __forceinline__ void with_width(int units, Function f) {
  const auto call = [&](auto width) {
    constexpr int N = decltype(width)::value * kUnit;
    if constexpr (N <= MAX_TOKENS) f(std::integral_constant<int, N>{});
  };
  switch (units) {
    case 1:
      return call(std::integral_constant<int, 1>{});
    case 2:
      return call(std::integral_constant<int, 2>{});
    case 3:
      return call(std::integral_constant<int, 3>{});
    case 4:
      return call(std::integral_constant<int, 4>{});
    case 5:
      return call(std::integral_constant<int, 5>{});
    case 6:
      return call(std::integral_constant<int, 6>{});
    case 7:
      return call(std::integral_constant<int, 7>{});
    case 8:
      return call(std::integral_constant<int, 8>{});
    case 9:
      return call(std::integral_constant<int, 9>{});
    case 10:
      return call(std::integral_constant<int, 10>{});
    case 11:
      return call(std::integral_constant<int, 11>{});
    case 12:
      return call(std::integral_constant<int, 12>{});
    case 13:
      return call(std::integral_constant<int, 13>{});
    case 14:
      return call(std::integral_constant<int, 14>{});
    case 15:
      return call(std::integral_constant<int, 15>{});
    case 16:
      return call(std::integral_constant<int, 16>{});
    default:
      return;
  }
}

// ---- The host side of the bulk copies.

struct Maps {
  CUtensorMap w13, w2;
  CUtensorMap h, h_64, y, y_64;  // boxes of kUnit rows, and of 64
};

inline cudaError_t make_maps(Maps* maps,
                             const Arrays& a,
                             const __nv_bfloat16* w13,
                             const __nv_bfloat16* w2,
                             const Sizes& sizes) {
  const auto experts = static_cast<uint64_t>(sizes.num_experts);
  const auto hidden = static_cast<uint64_t>(sizes.hidden_size);
  const auto inner = static_cast<uint64_t>(sizes.intermediate_size);
  const uint64_t rows = a.max_rows;
  cudaError_t status = make_tensor_map(&maps->w13, w13, {hidden, 2 * inner, experts}, kBoxRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->w2, w2, {inner, hidden, experts}, kBoxRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->h, a.h, {inner, rows}, kUnit);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->h_64, a.h, {inner, rows}, kSlab);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->y, a.y, {hidden, rows}, kUnit);
  if (status != cudaSuccess) return status;
  return make_tensor_map(&maps->y_64, a.y, {hidden, rows}, kSlab);
}

}  // namespace moe::DRILL_SIDE::m8
