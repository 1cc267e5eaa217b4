// m9_decode.pieces.h: given to m9. What a warp of its products works with: a ring of weights that
// are under way, and how the work is cut into pieces.
#pragma once

#include <type_traits>

#include <drills/chunk.h>
#include <drills/m9_decode.routing.h>
#include <drills/ptx.h>

namespace moe::DRILL_SIDE::m9 {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / kWarpSize;
inline constexpr int kMostBlocksPerMultiprocessor = 2;

struct Problem {
  __nv_bfloat16* out;        // [T, H]
  const __nv_bfloat16* x;    // [T, H]
  const __nv_bfloat16* w13;  // [E, 2I, H]
  const __nv_bfloat16* w2;   // [E, H, I]
  Arrays a;
  Sizes s;
  int splits;
};

__device__ __forceinline__ float silu_and_mul(float gate, float up) {
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

// ---- The ring. Each warp has its own, of kStages stages of 2 KB, and needs no other warp: stage
// after stage arrives by cp.async while earlier ones are used. 12 KB a warp and 16 warps on a
// multiprocessor are 192 KB that may be under way, whatever the warps are doing.

inline constexpr int kStages = 6;
inline constexpr int kStageBytes = 2048;
inline constexpr size_t kRingBytes = size_t{kWarps} * kStages * kStageBytes;

struct Ring {
  unsigned char* stages;  // this warp's
  int asked = 0;          // the stage that the next request fills
  int used = 0;           // the stage that is used next

  __device__ explicit Ring(unsigned char* of_block)
      : stages(of_block + threadIdx.x / kWarpSize * (kStages * kStageBytes)) {}
  __device__ unsigned char* next_asked() {
    unsigned char* stage = stages + asked * kStageBytes;
    asked = asked + 1 == kStages ? 0 : asked + 1;
    return stage;
  }
  __device__ const unsigned char* next_used() {
    const unsigned char* stage = stages + used * kStageBytes;
    used = used + 1 == kStages ? 0 : used + 1;
    return stage;
  }
};

// ---- T <= 4: a stage is 256 columns of four rows of W, eight columns of each row for a lane,
// which reads only what it asked for itself.

inline constexpr int kRows = 4;
inline constexpr int kStep = kWarpSize * kChunk;

// Asks for columns k and on of four rows: `first`, the next one, and two that lie `pair` elements
// further. A row has `depth` columns; behind its end zeros arrive.
__device__ __forceinline__ void copy_rows(
    unsigned char* stage, const __nv_bfloat16* first, int64_t pair, int depth, int k) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int mine = k + lane * kChunk;
  const __nv_bfloat16* from = first + (mine < depth ? mine : 0);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    cp_async16(stage + (r * kWarpSize + lane) * 16, from + r / 2 * pair + r % 2 * int64_t{depth},
               mine < depth);
  }
}

// This lane's eight columns of each row of a stage.
__device__ __forceinline__ void load_rows(uint4 (&w)[kRows], const unsigned char* stage) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    w[r] = *reinterpret_cast<const uint4*>(stage + (r * kWarpSize + lane) * 16);
  }
}

// Where the flat id of a token stands: `token` must be one of the run's.
__device__ inline int flat_id_of(const Arrays& a, const Run& run, int token) {
  return a.flat_ids[run.first + __popc(run.tokens & ((1u << token) - 1))];
}

// ---- T > 4: a stage is 64 columns of 16 rows of W. A row is 128 bytes, eight chunks of 16; chunks
// of odd rows are exchanged in fours, so that the eight lanes that are served together, four chunks
// of two rows, find them in different banks.

inline constexpr int kTile = 8;      // tokens of one mma
inline constexpr int kColumns = 64;  // of W, in one step: four mmas of 16

__device__ __forceinline__ int chunk_place(int row, int chunk) {
  return row * kColumns * 2 + (chunk ^ row % 2 * 4) * 16;
}

__device__ __forceinline__ uint4 load_weights(const unsigned char* stage, int row, int chunk) {
  return *reinterpret_cast<const uint4*>(stage + chunk_place(row, chunk));
}

// Asks for columns `column` and on, up to `end`, of 16 rows that are `depth` long. This lane copies
// a chunk of rows `row` and row + 4 of the upper eight and of the lower eight. upper and lower:
// where `row` of each starts; lower is null where there are but eight rows. Zeros arrive for what
// there isn't.
__device__ __forceinline__ void copy_columns(unsigned char* stage,
                                             const __nv_bfloat16* upper,
                                             const __nv_bfloat16* lower,
                                             int depth,
                                             int column,
                                             int end) {
  const int row = static_cast<int>(threadIdx.x) % kWarpSize / kChunk;
  const int chunk = static_cast<int>(threadIdx.x) % kChunk;
  const int k = column + chunk * kChunk;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat16* first = i < 2 ? upper : lower;
    const bool valid = k < end && first != nullptr;
    const int64_t at = i % 2 * 4 * int64_t{depth} + k;
    cp_async16(stage + chunk_place(i * 4 + row, chunk), valid ? first + at : upper, valid);
  }
}

// Calls f with the number of tiles for `count` tokens, rounded up to 1, 2, 4 or 8, as a type whose
// ::value is a constant.
template <class Function>
__device__ __forceinline__ void with_tiles(int count, Function f) {
  if (count <= kTile) return f(std::integral_constant<int, 1>{});
  if (count <= 2 * kTile) return f(std::integral_constant<int, 2>{});
  if (count <= 4 * kTile) return f(std::integral_constant<int, 4>{});
  return f(std::integral_constant<int, 8>{});
}

// The flat id of token `place` of a run, -1 behind its last.
__device__ __forceinline__ int id_at(const Arrays& a, const Run& run, int place) {
  return place < run.count ? a.flat_ids[run.first + place] : -1;
}

}  // namespace moe::DRILL_SIDE::m9
