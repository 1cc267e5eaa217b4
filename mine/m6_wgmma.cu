// m6_wgmma: m2's grouped GEMM with the instructions of Hopper.
//
// The plan is m2's: a block computes BLOCK_M gathered rows by BLOCK_N columns, tiles travel through
// a ring of STAGES buffers, one barrier a turn. Three things are new:
//   wgmma   128 threads (a warpgroup) multiply 64 rows at once and read both tiles from shared
//           memory, so no ldmatrix: a 64-bit descriptor says where a tile lies
//   TMA     one thread fetches the whole tile of W, masked and swizzled; an mbarrier counts bytes
//   proxies A is gathered by cp.async as before, but wgmma reads shared memory by another path: a
//           fence stands between
// Nobody is specialised: every thread copies, waits and multiplies. While one block waits at its
// barrier, the other block of the multiprocessor multiplies.
//
// The contract is drills/m6_wgmma.h; the note is content/m6_wgmma.md.
#include <drills/m6_wgmma.h>

#include <drills/launch.h>
#include <drills/wgmma.h>

namespace moe::DRILL_SIDE::m6 {
namespace {

constexpr int BLOCK_N = 128;
constexpr int BLOCK_K = 64;  // 128 bytes: one row of a swizzled tile
constexpr int STAGES = 3;    // two blocks a multiprocessor: 2 * 96 KiB of its 227
constexpr int kWarpgroup = 128;
constexpr int kWarpgroupRows = 64;               // what one wgmma computes
constexpr int kChunk = 8;                        // bf16 values in one 16-byte cp.async
constexpr int kChunksPerRow = BLOCK_K / kChunk;  // 8 threads copy one row of A
constexpr int kPasses = 4;                       // rows of A that one thread copies a chunk of

// A row of a tile is 128 bytes long. Tiles are swizzled: chunk c of row r lies where chunk c ^ (r %
// 8) would. They start at multiples of 1024 bytes.
template <int BLOCK_M>
struct SharedTiles {
  __nv_bfloat16 a[STAGES][BLOCK_M][BLOCK_K];  // gathered rows
  __nv_bfloat16 w[STAGES][BLOCK_N][BLOCK_K];  // of w[expert]
  uint64_t full[STAGES];                      // mbarriers: the tile of W has arrived
};

struct Problem {
  __nv_bfloat16* out;                     // [T*K, N]
  const __nv_bfloat16* a;                 // [T, D] or [T*K, D]
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

// Build the word by which wgmma finds a K-major tile with the 128-byte swizzle: the fields are
// listed in drills/wgmma.h. (wgmma_descriptor there builds the same word: check yours against it.)
__device__ uint64_t descriptor_of(const void* tile) {
  // BEGIN m6.descriptor
  // about 4 lines
  DRILL_TODO("m6.descriptor");
  return 0;
  // END m6.descriptor
}

template <int BLOCK_M>
__global__ void __launch_bounds__(2 * BLOCK_M, 2)
    grouped_gemm_kernel(const __grid_constant__ CUtensorMap w_map, Problem p) {
  // Preconditions
  constexpr int kThreads = BLOCK_M / kWarpgroupRows * kWarpgroup;
  constexpr int kRowsPerPass = kThreads / kChunksPerRow;
  static_assert(kThreads == 2 * BLOCK_M, "the launch bound");
  static_assert(kPasses * kRowsPerPass == BLOCK_M, "all threads copy all rows of A");
  static_assert(kRowsPerPass % 8 == 0, "a thread's rows have the same r % 8");

  auto& tiles = *dynamic_shared<SharedTiles<BLOCK_M>>();
  const int thread = static_cast<int>(threadIdx.x);
  // Columns run fastest: the blocks that run together share rows of A and the weights of few
  // experts.
  const int num_pid_n = (p.n + BLOCK_N - 1) / BLOCK_N;
  const int pid_m = static_cast<int>(blockIdx.x) / num_pid_n;
  const int first_row = pid_m * BLOCK_M;
  const int first_column = static_cast<int>(blockIdx.x) % num_pid_n * BLOCK_N;

  // As in m2: blocks without work leave, all threads alike.
  // BEGIN m6.early_exit (given)
  if (first_row >= *p.num_tokens_post_padded) return;
  const int expert = p.expert_ids[pid_m];
  if (expert < 0 || expert >= p.num_experts) return;
  // END m6.early_exit

  // Let one thread make the mbarriers of the ring: a phase of full[s] ends with one arrival and the
  // bytes that it announces. The copy engine must see them, too.
  // BEGIN m6.barriers
  // about 4 lines
  DRILL_TODO("m6.barriers");
  // END m6.barriers
  __syncthreads();

  // As in m2: a_rows[i] is the row of A for row my_row + i * kRowsPerPass of the tile, nullptr for
  // padding. This thread copies chunk my_chunk of each.
  const int my_row = thread / kChunksPerRow;
  const int my_chunk = thread % kChunksPerRow;
  const __nv_bfloat16* a_rows[kPasses] = {};
  // BEGIN m6.rows (given)
#pragma unroll
  for (int i = 0; i < kPasses; ++i) {
    const int flat_id = p.sorted_token_ids[first_row + my_row + i * kRowsPerPass];
    if (flat_id < p.num_ids) {
      const int a_row = p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id;
      a_rows[i] = p.a + static_cast<int64_t>(a_row) * p.depth;
    }
  }
  // END m6.rows

  // Let thread 0 announce the bytes of W's tile to full[stage] and start its copy. The box has
  // columns k0 .. k0 + BLOCK_K - 1 of rows first_column .. first_column + BLOCK_N - 1 of w[expert].
  // Rows behind N and columns behind D arrive as zeros, and count.
  const auto load_w = [&](int stage, int k0) {
    // BEGIN m6.load_w
    // about 4 lines
    DRILL_TODO("m6.load_w");
    // END m6.load_w
  };

  // Start this thread's copies into the swizzled tile of A: columns k0 + 8 * my_chunk .. + 7 of its
  // rows. Chunks of padding rows or behind column D arrive as zeros: cp_async16's last argument.
  const auto load_a = [&](int stage, int k0) {
    // BEGIN m6.gather
    // about 8 lines
    DRILL_TODO("m6.gather");
    // END m6.gather
  };

  // Accumulator 4j + 2h + e of a thread is row g + 8h, column 8j + 2t + e of its warp's 16 rows
  // (g = lane / 4, t = lane % 4).
  float accumulators[BLOCK_N / 2] = {};
  const int warpgroup = thread / kWarpgroup;  // computes rows 64 * warpgroup .. + 63

  // Start the product of the tiles in buffer `stage`: one wgmma for each 16 columns. What was
  // written to the accumulators before must be seen, and the four form one group.
  const auto multiply_tiles = [&](int stage) {
    // BEGIN m6.multiply
    // about 8 lines
    DRILL_TODO("m6.multiply");
    // END m6.multiply
  };

  // Run the ring as in m2: STAGES - 1 loads are under way before the first product. At the start of
  // a turn its tiles must be there and be seen by wgmma: W, by the phase of full[stage], whose
  // parity flips each time the ring starts over; this thread's chunks of A, by the fence also for
  // the other path. The barrier then says so of everybody's chunks, and that everybody has finished
  // with the buffer that the next load overwrites: wgmma runs on its own until it is waited for.
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  // BEGIN m6.mainloop
  // about 22 lines
  DRILL_TODO("m6.mainloop");
  // END m6.mainloop

  // Round each row of the tile to bf16 and store it in row flat_id of `out`; padding rows and
  // columns at or behind N are not written. N % 8 == 0: both columns of a pair exist, or none.
  // BEGIN m6.store
  // about 15 lines
  DRILL_TODO("m6.store");
  // END m6.store
}

template <int BLOCK_M>
cudaError_t launch_grouped_gemm(const CUtensorMap& w_map,
                                const Problem& p,
                                int num_blocks,
                                cudaStream_t stream) {
  const int num_pid_n = (p.n + BLOCK_N - 1) / BLOCK_N;
  return launch(grouped_gemm_kernel<BLOCK_M>, dim3(num_blocks * num_pid_n), dim3(2 * BLOCK_M),
                sizeof(SharedTiles<BLOCK_M>), stream, w_map, p);
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
  // w as an array of three dimensions, so that a box never leaves its expert: rows behind N are
  // outside. One copy moves BLOCK_N rows of 64 columns.
  CUtensorMap w_map;
  const cudaError_t status = make_tensor_map(
      &w_map, w,
      {static_cast<uint64_t>(depth), static_cast<uint64_t>(n), static_cast<uint64_t>(num_experts)},
      BLOCK_N);
  if (status != cudaSuccess) return status;
  const Problem p = {out,
                     a,
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
  return block_m == 64 ? launch_grouped_gemm<64>(w_map, p, num_blocks, stream)
                       : launch_grouped_gemm<128>(w_map, p, num_blocks, stream);
}

}  // namespace moe::DRILL_SIDE::m6
