// m9_decode.pieces.h: given to m9. What a warp of its products works with: for few tokens loads
// straight into registers, for more a ring of weights under way.
#pragma once

#include <type_traits>

#include <drills/chunk.h>
#include <drills/dependent_launch.h>
#include <drills/launch.h>
#include <drills/m9_decode.routing.h>
#include <drills/persistent.h>
#include <drills/ptx.h>

namespace moe::DRILL_SIDE::m9 {

inline constexpr int kThreads = 256;  // of a block of each product
inline constexpr int kWarps = kThreads / kWarpSize;

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

// ---- T <= 4: loads into registers.

// Blocks of GEMM1 and GEMM2 on a multiprocessor. For one token registers allow more of them, and a
// wave of blocks then holds all the work there is.
template <int TOKENS>
inline constexpr int kGemv1Blocks = TOKENS == 1 ? 3 : 2;
template <int TOKENS>
inline constexpr int kGemv2Blocks = TOKENS == 1 ? 4 : 2;

// 16 bytes of weights that will not be read again: first to leave the caches.
__device__ __forceinline__ uint4 load_weights(const __nv_bfloat16* from) {
  return __ldcs(reinterpret_cast<const uint4*>(from));
}

inline constexpr int kRows = 4;
inline constexpr int kStep = kWarpSize * kChunk;
inline constexpr int kStepsAtOnce = 2;  // whose loads are under way together

// Where the flat id of a token stands: `token` must be one of the run's.
__device__ inline int flat_id_of(const Arrays& a, const Run& run, int token) {
  return a.flat_ids[run.first + __popc(run.tokens & ((1u << token) - 1))];
}

// ---- T > 4: a ring of stages for each warp, which needs no other warp: one stage arrives by
// cp.async while the other is used. A stage is 128 columns of 16 rows of W, 256 bytes of each row:
// with 128 the memory reads the same pages again and again, and more stages or warps make it
// slower, too (content/m9_decode.md has the figures).

inline constexpr int kColumns = 128;    // of W, in one step
inline constexpr int kPart = 32;        // of a step: two mmas
inline constexpr int kTile = 8;         // tokens of one mma
inline constexpr int kPieceBlocks = 2;  // on a multiprocessor
inline constexpr int kStages = 2;
inline constexpr int kStageBytes = kPieceRows * kColumns * 2;
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

// A row of a stage is 16 chunks of 16 bytes. Those of odd rows are exchanged in fours, so that the
// eight lanes that are served together, four chunks of two rows, find them in different banks.
inline constexpr int kRowChunks = kColumns / kChunk;
inline constexpr int kRowsAtOnce = kWarpSize / kRowChunks;  // that a warp copies

__device__ __forceinline__ int chunk_place(int row, int chunk) {
  return row * kColumns * 2 + (chunk ^ row % 2 * 4) * 16;
}

__device__ __forceinline__ uint4 load_from(const unsigned char* stage, int row, int chunk) {
  return *reinterpret_cast<const uint4*>(stage + chunk_place(row, chunk));
}

// Which of the rows that are copied at once this lane has a chunk of.
__device__ __forceinline__ int copied_row() {
  return static_cast<int>(threadIdx.x) % kWarpSize / kRowChunks;
}

// Asks for columns `column` and on, up to `end`, of 16 rows that are `depth` long. upper and lower:
// where row copied_row() of the first eight and of the last eight starts; lower is null where there
// are but eight rows. Zeros arrive for what there isn't.
__device__ __forceinline__ void copy_columns(unsigned char* stage,
                                             const __nv_bfloat16* upper,
                                             const __nv_bfloat16* lower,
                                             int depth,
                                             int column,
                                             int end) {
  const int chunk = static_cast<int>(threadIdx.x) % kRowChunks;
  const int k = column + chunk * kChunk;
#pragma unroll
  for (int i = 0; i < kPieceRows; i += kRowsAtOnce) {
    const __nv_bfloat16* first = i < 8 ? upper : lower;
    const bool valid = k < end && first != nullptr;
    const int64_t at = i % 8 * int64_t{depth} + k;
    cp_async16(stage + chunk_place(i + copied_row(), chunk), valid ? first + at : upper, valid);
  }
}

// Calls f with the number of tiles for `count` tokens, rounded up to 1, 2, 4 or 8 but at most MOST,
// as a type whose ::value is a constant.
template <int MOST, class Function>
__device__ __forceinline__ void with_tiles(int count, Function f) {
  if constexpr (MOST > 2) {
    if (count > 4 * kTile) return f(std::integral_constant<int, 8>{});
    if (count > 2 * kTile) return f(std::integral_constant<int, 4>{});
  }
  if (count > kTile) return f(std::integral_constant<int, 2>{});
  return f(std::integral_constant<int, 1>{});
}

// The flat id of token `place` of a run, -1 behind its last.
__device__ __forceinline__ int id_at(const Arrays& a, const Run& run, int place) {
  return place < run.count ? a.flat_ids[run.first + place] : -1;
}

// ---- Launches.

// Blocks that stay and take one piece of work after another: as many as the GPU holds at once, but
// no more than `most` on a multiprocessor.
inline cudaError_t launch_persistent(
    void (*kernel)(Problem), int most, size_t shared_bytes, const Problem& p, cudaStream_t stream) {
  int multiprocessors = 0;
  int device = 0;
  int room = 0;
  cudaError_t status = count_multiprocessors(&multiprocessors);
  if (status == cudaSuccess) status = cudaGetDevice(&device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (status != cudaSuccess) return status;
  constexpr int kOfCuda = 1024;  // bytes of each block
  const int fit = room / (static_cast<int>(shared_bytes) + kOfCuda);
  const int blocks = multiprocessors * (fit < 1 ? 1 : fit < most ? fit : most);
  return launch(behind_kernel_in_front(kernel), kernel, dim3(static_cast<unsigned>(blocks)),
                dim3(kThreads), shared_bytes, stream, p);
}

}  // namespace moe::DRILL_SIDE::m9
