// m9_decode.pieces.h: given to m9. What a warp of its products works with.
#pragma once

#include <type_traits>

#include <drills/chunk.h>
#include <drills/m9_decode.routing.h>

namespace moe::DRILL_SIDE::m9 {

inline constexpr int kThreads = 256;
inline constexpr int kWarps = kThreads / kWarpSize;
inline constexpr int kBlocksPerMultiprocessor = 2;

struct Problem {
  __nv_bfloat16* out;        // [T, H]
  const __nv_bfloat16* x;    // [T, H]
  const __nv_bfloat16* w13;  // [E, 2I, H]
  const __nv_bfloat16* w2;   // [E, H, I]
  Arrays a;
  Sizes s;
  int splits;
};

// 16 bytes of weights that will not be read again: first to leave the caches.
__device__ __forceinline__ uint4 load_weights(const __nv_bfloat16* from) {
  return __ldcs(reinterpret_cast<const uint4*>(from));
}

__device__ __forceinline__ float silu_and_mul(float gate, float up) {
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

inline constexpr int kRows = 4;
inline constexpr int kStep = kWarpSize * kChunk;
inline constexpr int kStepsAtOnce = 2;  // whose loads are under way together

// Where the flat id of a token stands: `token` must be one of the run's.
__device__ inline int flat_id_of(const Arrays& a, const Run& run, int token) {
  return a.flat_ids[run.first + __popc(run.tokens & ((1u << token) - 1))];
}

inline constexpr int kTile = 8;           // tokens of one mma
inline constexpr int kColumns = 32;       // of W, in one step: two mmas of 16
inline constexpr int kColumnsAtOnce = 4;  // steps whose loads are under way together

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
