// m2_grouped_gemm: out[flat_id] = a[row] * w[expert]^T on tensor cores, rows gathered by flat id.
//
// A plain tiled GEMM with two changes: the rows of A are not consecutive but named by
// sorted_token_ids, and the start of B depends on the expert of the block. Tiles of A and W travel
// through a ring of STAGES buffers in shared memory: cp.async fills one while mma.sync works on
// another.
//
// Four warps compute a BLOCK_M x 64 tile, eight one of 128 x 128. W is stored [N, D], so a row of
// the W tile is a column of B = w^T: just what mma.sync's "col" operand wants, no transpose needed.
//
// The contract is drills/m2_grouped_gemm.h; the note is content/m2_grouped_gemm.md.
#include <drills/m2_grouped_gemm.h>

#include <drills/launch.h>
#include <drills/ptx.h>

namespace moe::DRILL_SIDE {
namespace {

constexpr int kChunk = 8;  // bf16 values in one 16-byte cp.async

// How a block works on its tile. Tiles of 128 rows are for experts with many: a larger tile uses
// each value that it loads more often. Two stages of it leave room for two blocks on every GPU
// from 8.0 on.
template <int BLOCK_M>
struct Tile {
  static constexpr int kThreads = BLOCK_M == 128 ? 256 : 128;
  static constexpr int BLOCK_N = BLOCK_M == 128 ? 128 : 64;
  static constexpr int BLOCK_K = BLOCK_M == 128 ? 64 : 32;
  static constexpr int STAGES = BLOCK_M == 128 ? 2 : 3;
  static constexpr int WARPS_M = BLOCK_M == 128 ? 4 : BLOCK_M >= 32 ? 2 : 1;
  // Rows of 16 bytes more than a tile's: the eight rows that ldmatrix reads at once then start in
  // different banks.
  static constexpr int kRowPitch = BLOCK_K + 8;

  struct Shared {
    __nv_bfloat16 a[STAGES][BLOCK_M][kRowPitch];  // (BLOCK_M, BLOCK_K) of gathered rows
    __nv_bfloat16 w[STAGES][BLOCK_N][kRowPitch];  // (BLOCK_N, BLOCK_K) of w[expert]
  };
};

struct Problem {
  __nv_bfloat16* out;                     // [T*K, N]
  const __nv_bfloat16* a;                 // [T, D] or [T*K, D]
  const __nv_bfloat16* w;                 // [E, N, D]
  const int32_t* sorted_token_ids;        // [capacity]
  const int32_t* expert_ids;              // [capacity / BLOCK_M]
  const int32_t* num_tokens_post_padded;  // [1]
  int num_ids;                            // T*K, also the pad id
  int top_k;
  int num_experts;
  int n;
  int depth;
  Rows rows;
};

template <int BLOCK_M>
__global__ void __launch_bounds__(Tile<BLOCK_M>::kThreads) grouped_gemm_kernel(Problem p) {
  // Preconditions
  constexpr int kThreads = Tile<BLOCK_M>::kThreads;
  constexpr int BLOCK_N = Tile<BLOCK_M>::BLOCK_N;
  constexpr int BLOCK_K = Tile<BLOCK_M>::BLOCK_K;
  constexpr int STAGES = Tile<BLOCK_M>::STAGES;
  constexpr int kChunksPerRow = BLOCK_K / kChunk;  // so many threads load one row of a tile
  constexpr int kRowsPerPass = kThreads / kChunksPerRow;
  constexpr int WARPS_M = Tile<BLOCK_M>::WARPS_M;
  constexpr int WARPS_N = kThreads / 32 / WARPS_M;
  constexpr int WARP_M = BLOCK_M / WARPS_M;  // rows of the tile that one warp computes
  constexpr int WARP_N = BLOCK_N / WARPS_N;  // and columns
  constexpr int MMA_M = WARP_M / 16;
  constexpr int MMA_N = WARP_N / 8;
  static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "a warp computes whole 16 x 16 pieces");

  auto& tiles = *dynamic_shared<typename Tile<BLOCK_M>::Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp_m = thread / 32 % WARPS_M;
  const int warp_n = thread / 32 / WARPS_M;
  const int pid_m = static_cast<int>(blockIdx.x);
  const int first_row = pid_m * BLOCK_M;
  const int first_column = static_cast<int>(blockIdx.y) * BLOCK_N;

  // Leave when this block lies at or behind *num_tokens_post_padded, or when its expert is outside
  // [0, E): the grid is made for the worst routing. `expert` is expert_ids[pid_m].
  // BEGIN m2.early_exit
  // about 3 lines
  DRILL_TODO("m2.early_exit");
  const int expert = 0;
  // END m2.early_exit

  // Each thread loads the same 16-byte chunk of rows my_row, my_row + kRowsPerPass, ... of both
  // tiles.
  const int my_row = thread / kChunksPerRow;
  const int my_k = thread % kChunksPerRow * kChunk;
  constexpr int kPassesA = (BLOCK_M + kRowsPerPass - 1) / kRowsPerPass;
  constexpr int kPassesW = BLOCK_N / kRowsPerPass;

  // The rows of A that this thread will load: a_rows[i] points at the first element of the row of A
  // that belongs to row my_row + i * kRowsPerPass of the tile, or is nullptr for padding (flat ids
  // of T*K) and for rows behind the tile. Which row of A a flat id means depends on p.rows. int64
  // offsets.
  const __nv_bfloat16* a_rows[kPassesA] = {};
  // BEGIN m2.gather
  // about 9 lines
  DRILL_TODO("m2.gather");
  // END m2.gather
  const __nv_bfloat16* w_expert = p.w + static_cast<int64_t>(expert) * p.n * p.depth;

  // Starts the copies of columns k0 .. k0 + BLOCK_K - 1 of A and W into ring buffer `stage`. What
  // is padding, behind column D or behind row N of W arrives as zeros: cp_async16's last argument
  // (with a legal address: the start of the array). Rows behind A's tile have no place: no copy.
  const auto load_tiles = [&](int stage, int k0) {
    // BEGIN m2.load
    // about 16 lines
    DRILL_TODO("m2.load");
    // END m2.load
  };

  float accumulators[MMA_M][MMA_N][4] = {};

  // Adds the product of the tiles in ring buffer `stage` to the accumulators.
  const auto multiply_tiles = [&](int stage) {
    // BEGIN m2.multiply
    // about 23 lines
    DRILL_TODO("m2.multiply");
    // END m2.multiply
  };

  // Run the ring: STAGES - 1 loads are under way before the first product. Only tiles below `turns`
  // are loaded, but every turn commits one group, an empty one too, so that "all but STAGES - 2
  // groups" always means "the tile of this turn has arrived". One barrier a turn is enough: it says
  // both that everybody's copies of this tile are there and that everybody has finished with the
  // buffer that the next load overwrites.
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  // BEGIN m2.mainloop
  // about 12 lines
  DRILL_TODO("m2.mainloop");
  // END m2.mainloop

  // Round each row of the tile to bf16 and store it in row flat_id of `out`; padding rows and
  // columns at or behind N are not written. Row g + 8 * half of a 16 x 8 piece lies in accumulator
  // registers 2 * half and 2 * half + 1, columns 2t and 2t + 1 (g = lane / 4, t = lane % 4). N % 8
  // == 0: both columns exist, or none.
  // BEGIN m2.store
  // about 18 lines
  DRILL_TODO("m2.store");
  // END m2.store
}

template <int BLOCK_M>
cudaError_t launch_grouped_gemm(const Problem& p, int num_blocks, cudaStream_t stream) {
  constexpr int BLOCK_N = Tile<BLOCK_M>::BLOCK_N;
  // x carries the M blocks: T*K / 16 may pass the 65,535 that y can hold.
  const dim3 grid(num_blocks, (p.n + BLOCK_N - 1) / BLOCK_N);
  return launch(grouped_gemm_kernel<BLOCK_M>, grid, dim3(Tile<BLOCK_M>::kThreads),
                sizeof(typename Tile<BLOCK_M>::Shared), stream, p);
}

}  // namespace

cudaError_t grouped_gemm(__nv_bfloat16* out,
                         const __nv_bfloat16* a,
                         const __nv_bfloat16* w,
                         const int32_t* sorted_token_ids,
                         const int32_t* expert_ids,
                         const int32_t* num_tokens_post_padded,
                         int num_tokens,
                         int top_k,
                         int num_experts,
                         int n,
                         int depth,
                         int block_m,
                         Rows rows,
                         cudaStream_t stream) {
  if (refuse_grouped_gemm(out, a, w, sorted_token_ids, expert_ids, num_tokens_post_padded,
                          num_tokens, top_k, num_experts, n, depth, block_m, rows,
                          stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const Problem p = {out,
                     a,
                     w,
                     sorted_token_ids,
                     expert_ids,
                     num_tokens_post_padded,
                     num_tokens * top_k,
                     top_k,
                     num_experts,
                     n,
                     depth,
                     rows};
  const int num_blocks =
      static_cast<int>(align_capacity(num_tokens, top_k, num_experts, block_m)) / block_m;
  switch (block_m) {
    case 16:
      return launch_grouped_gemm<16>(p, num_blocks, stream);
    case 32:
      return launch_grouped_gemm<32>(p, num_blocks, stream);
    case 64:
      return launch_grouped_gemm<64>(p, num_blocks, stream);
    default:
      return launch_grouped_gemm<128>(p, num_blocks, stream);
  }
}

}  // namespace moe::DRILL_SIDE
