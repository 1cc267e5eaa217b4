// m4_group_m: the grouped GEMM again, on tiles that keep the tensor cores busy, visited in groups.
//
// New since m2 and m3: the grid has one dimension and tile_of says which tile a program computes,
// so that programs which run together share panels of A and W in the L2 cache. The tile is fast: a
// warp computes 64 x 64 values and so uses what it reads from shared memory 64 times; rows are
// swizzled, not padded; fragments of the next 16 of D are read while these are multiplied; SwiGLU
// runs in GEMM1's epilogue; results leave through shared memory in 16-byte chunks.
//
// The contract is drills/m4_group_m.h, the table of tiles m4_group_m.tiles.h beside it; the note is
// content/m4_group_m.md.
#include <drills/m4_group_m.h>

#include <drills/launch.h>
#include <drills/layer_arrays.h>
#include <drills/ptx.h>
#include <drills/upstream.h>

namespace moe::DRILL_SIDE::m4 {

// The picture in the header as a formula. Groups of group_m rows of tiles, fewer in the last one;
// inside a group pid_m runs fastest, then pid_n.
__host__ __device__ TileCoordinates tile_of(int pid, int num_pid_m, int num_pid_n, int group_m) {
  // BEGIN m4.tile_of
  // about 7 lines
  DRILL_TODO("m4.tile_of");
  return {0, 0};
  // END m4.tile_of
}

// The rule stands in the header. T*K fits in int.
Tile pick_tile(int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  Tile tile = kFewTokensTile;
  // BEGIN m4.pick_tile
  // about 10 lines
  DRILL_TODO("m4.pick_tile");
  // END m4.pick_tile
  return tile;
}

namespace {

constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kChunk = 8;  // bf16 values in 16 bytes: one cp.async, one row of an 8x8 matrix
constexpr int kPadding = -1;

template <int BLOCK_M, int BLOCK_N, int BLOCK_K, int STAGES, int WARPS_M, int WARPS_N>
struct SharedTiles {
  // Results have rows of 16 more bytes, so that eight rows start in different banks.
  static constexpr int kPitch = BLOCK_N / WARPS_N + kChunk;
  struct Stage {
    __nv_bfloat16 a[BLOCK_M * BLOCK_K];  // (BLOCK_M, BLOCK_K) of gathered rows, swizzled
    __nv_bfloat16 w[BLOCK_N * BLOCK_K];  // (BLOCK_N, BLOCK_K) of w[expert], swizzled
  };
  union {
    Stage ring[STAGES];
    __nv_bfloat16 results[WARPS_M * WARPS_N][BLOCK_M / WARPS_M * kPitch];  // after the main loop
  };
};

// Where chunk `chunk` of row `row` of a tile stands. The XOR spreads the same chunk of eight rows,
// which ldmatrix reads at once, over all banks; rows of 64 bytes lie two to a line of 128.
template <int BLOCK_K>
__device__ __forceinline__ int swizzled(int row, int chunk) {
  static_assert(BLOCK_K == 32 || BLOCK_K == 64, "rows of 64 or 128 bytes");
  const int turn = BLOCK_K == 64 ? row % 8 : row / 2 % 4;
  return row * BLOCK_K + (chunk ^ turn) * kChunk;
}

// With SwiGLU a tile takes gate and up of the same columns, in turns of 8: of 16 rows of the W tile
// the first 8 are gate rows, the others the up rows of the same 8 columns. So a lane holds both in
// neighbouring accumulators. Returns the row of w[expert], or kPadding behind the last column.
__device__ __forceinline__ int w_row_of(const GroupedGemm& p, int first_column, int tile_row) {
  const int column = first_column + (p.swiglu ? tile_row / 16 * 8 + tile_row % 8 : tile_row);
  if (column >= p.n) return kPadding;
  return p.swiglu && tile_row / 8 % 2 == 1 ? p.n + column : column;
}

// The fast exponential and division are right to about 1e-6: far inside the rounding to bf16.
__device__ __forceinline__ float silu(float x) {
  return __fdividef(x, 1.0f + __expf(-x));
}

// WARPS_M x WARPS_N warps compute a tile, BLOCKS blocks fit on a multiprocessor: one can multiply
// while another waits at a barrier, fills its ring or stores.
template <int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARPS_M, int WARPS_N, int STAGES, int BLOCKS>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N, BLOCKS)
    grouped_gemm_kernel(GroupedGemm p) {
  // Preconditions
  constexpr int WARP_M = BLOCK_M / WARPS_M;  // rows of the tile that one warp computes
  constexpr int WARP_N = BLOCK_N / WARPS_N;  // and columns
  constexpr int MMA_M = WARP_M / 16;
  constexpr int MMA_N = WARP_N / 8;
  constexpr int kChunksPerRow = BLOCK_K / kChunk;
  constexpr int kRowsPerPass = 32 * WARPS_M * WARPS_N / kChunksPerRow;
  constexpr int kPassesA = BLOCK_M / kRowsPerPass;
  constexpr int kPassesW = BLOCK_N / kRowsPerPass;
  using Tiles = SharedTiles<BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N>;
  static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "a warp computes whole 16 x 16 pieces");
  static_assert(BLOCK_M % kRowsPerPass == 0 && BLOCK_N % kRowsPerPass == 0, "whole passes");
  static_assert(sizeof(Tiles) == STAGES * sizeof(typename Tiles::Stage), "results fit in the ring");

  auto& tiles = *dynamic_shared<Tiles>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int warp_m = warp % WARPS_M;
  const int warp_n = warp / WARPS_M;
  const int num_ids = p.num_tokens * p.top_k;  // also the pad id
  const int tile_columns = columns_of_tile(BLOCK_N, p.swiglu);
  const int num_pid_n = (p.n + tile_columns - 1) / tile_columns;
  const int pid = static_cast<int>(blockIdx.x);

  // The grid is made for the worst routing; *num_tokens_post_padded says how many rows of tiles
  // there really are. Programs at or behind num_pid_m * num_pid_n leave, all threads alike; the
  // others find their tile. Groups must be made of real rows of tiles.
  // BEGIN m4.order
  // about 3 lines
  DRILL_TODO("m4.order");
  const TileCoordinates tile = {0, 0};
  // END m4.order
  if (p.trace != nullptr && thread == 0) p.trace[pid] = tile;
  const int first_row = tile.m * BLOCK_M;
  const int first_column = tile.n * tile_columns;
  const int expert = p.expert_ids[tile.m];
  if (expert < 0 || expert >= p.num_experts) return;

  // Each thread loads the same chunk of rows my_row, my_row + kRowsPerPass, ... of both tiles.
  // BEGIN m4.gather (given)
  const int my_row = thread / kChunksPerRow;
  const int my_chunk = thread % kChunksPerRow;
  int a_rows[kPassesA];
  int w_rows[kPassesW];
#pragma unroll
  for (int i = 0; i < kPassesA; ++i) {
    const int flat_id = p.sorted_token_ids[first_row + my_row + i * kRowsPerPass];
    const int row = p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id;
    a_rows[i] = flat_id < num_ids ? row : kPadding;
  }
#pragma unroll
  for (int i = 0; i < kPassesW; ++i) {
    w_rows[i] = w_row_of(p, first_column, my_row + i * kRowsPerPass);
  }
  const __nv_bfloat16* w_expert =
      p.w + static_cast<int64_t>(expert) * (p.swiglu ? 2 * p.n : p.n) * p.depth;
  // END m4.gather

  // Padding rows of A stand at the end of an expert: often a warp has no other, and only copies.
  const int32_t* flat_ids = p.sorted_token_ids + first_row + warp_m * WARP_M;
  bool busy = false;
  for (int row = lane; row < WARP_M; row += 32) busy |= flat_ids[row] < num_ids;
  busy = __any_sync(kAllLanes, busy) != 0;

  // Starts the copies of columns k0 .. k0 + BLOCK_K - 1 of A and W into ring buffer `stage`. What
  // does not exist arrives as zeros.
  const auto load_tiles = [&](int stage, int k0) {
    // BEGIN m4.load (given)
    const int k = k0 + my_chunk * kChunk;
    const auto copy = [&](__nv_bfloat16* to, const __nv_bfloat16* matrix, int row, int pass) {
      const bool exists = row != kPadding && k < p.depth;
      cp_async16(to + swizzled<BLOCK_K>(my_row + pass * kRowsPerPass, my_chunk),
                 exists ? matrix + static_cast<int64_t>(row) * p.depth + k : matrix, exists);
    };
#pragma unroll
    for (int i = 0; i < kPassesA; ++i) copy(tiles.ring[stage].a, p.a, a_rows[i], i);
#pragma unroll
    for (int i = 0; i < kPassesW; ++i) copy(tiles.ring[stage].w, w_expert, w_rows[i], i);
    // END m4.load
  };

  float accumulators[MMA_M][MMA_N][4] = {};

  // Adds the product of the tiles in ring buffer `stage`. Two sets of fragments: one is read from
  // shared memory while the other is multiplied.
  const auto multiply_tiles = [&](int stage) {
    // BEGIN m4.multiply (given)
    uint32_t a[2][MMA_M][4];
    uint32_t b[2][MMA_N / 2][4];
    const auto read_fragments = [&](int set, int step) {
#pragma unroll
      for (int i = 0; i < MMA_M; ++i) {
        const int row = warp_m * WARP_M + i * 16 + lane % 16;
        ldmatrix_x4(a[set][i], &tiles.ring[stage].a[swizzled<BLOCK_K>(row, step * 2 + lane / 16)]);
      }
#pragma unroll
      for (int j = 0; j < MMA_N / 2; ++j) {
        const int row = warp_n * WARP_N + j * 16 + lane / 16 * 8 + lane % 8;
        ldmatrix_x4(b[set][j],
                    &tiles.ring[stage].w[swizzled<BLOCK_K>(row, step * 2 + lane / 8 % 2)]);
      }
    };
    read_fragments(0, 0);
#pragma unroll
    for (int step = 0; step < BLOCK_K / 16; ++step) {
      if (step + 1 < BLOCK_K / 16) read_fragments((step + 1) % 2, step + 1);
#pragma unroll
      for (int i = 0; i < MMA_M; ++i) {
#pragma unroll
        for (int j = 0; j < MMA_N; ++j) {
          const uint32_t(&pair)[4] = b[step % 2][j / 2];
          const uint32_t column[2] = {pair[j % 2 * 2], pair[j % 2 * 2 + 1]};
          mma_m16n8k16(accumulators[i][j], a[step % 2][i], column);
        }
      }
    }
    // END m4.multiply
  };

  // The ring of m2: STAGES - 1 loads are under way before the first product.
  // BEGIN m4.mainloop (given)
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  for (int turn = 0; turn < STAGES - 1; ++turn) {
    if (turn < turns) load_tiles(turn, turn * BLOCK_K);
    cp_async_commit();
  }
  for (int turn = 0; turn < turns; ++turn) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this tile has arrived for all; all are done with the buffer loaded next
    const int next = turn + STAGES - 1;
    if (next < turns) load_tiles(next % STAGES, next * BLOCK_K);
    cp_async_commit();
    if (busy) multiply_tiles(turn % STAGES);
  }
  __syncthreads();  // all are done with the ring: results may overwrite it
  // END m4.mainloop
  if (!busy) return;

  // Results go to shared memory as bf16, where each warp has a place of its own, and from there row
  // by row to `out`: neighbouring lanes write neighbouring chunks. m2.store says where a lane's
  // values lie.
  // BEGIN m4.store (given)
  __nv_bfloat16* results = tiles.results[warp];
#pragma unroll
  for (int i = 0; i < MMA_M; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = i * 16 + half * 8 + lane / 4;
      const int flat_id = flat_ids[row];
      const bool weighted = p.topk_weights != nullptr && flat_id < num_ids;
      const float weight = weighted ? p.topk_weights[flat_id] : 1.0f;
      auto* pairs = reinterpret_cast<__nv_bfloat162*>(results + row * Tiles::kPitch) + lane % 4;
#pragma unroll
      for (int j = 0; j < MMA_N; j += 2) {
        const float* c = &accumulators[i][j][half * 2];      // with SwiGLU: gate
        const float* d = &accumulators[i][j + 1][half * 2];  // and up
        if (p.swiglu) {
          pairs[j * 2] = __floats2bfloat162_rn(silu(c[0]) * d[0], silu(c[1]) * d[1]);
        } else {
          pairs[j * 4] = __floats2bfloat162_rn(c[0] * weight, c[1] * weight);
          pairs[j * 4 + 4] = __floats2bfloat162_rn(d[0] * weight, d[1] * weight);
        }
      }
    }
  }
  __syncwarp();  // lanes read what other lanes wrote
  const int chunks = columns_of_tile(WARP_N, p.swiglu) / kChunk;
  for (int piece = lane; piece < WARP_M * chunks; piece += 32) {
    const int flat_id = flat_ids[piece / chunks];
    const int column = first_column + (warp_n * chunks + piece % chunks) * kChunk;
    if (flat_id >= num_ids || column >= p.n) continue;
    *reinterpret_cast<uint4*>(p.out + static_cast<int64_t>(flat_id) * p.n + column) =
        *reinterpret_cast<const uint4*>(results + piece / chunks * Tiles::kPitch +
                                        piece % chunks * kChunk);
  }
  // END m4.store
}

template <int BLOCK_M, int BLOCK_N, int BLOCK_K, int WARPS_M, int WARPS_N, int STAGES, int BLOCKS>
cudaError_t launch_tile(const GroupedGemm& p, cudaStream_t stream) {
  return launch(grouped_gemm_kernel<BLOCK_M, BLOCK_N, BLOCK_K, WARPS_M, WARPS_N, STAGES, BLOCKS>,
                dim3(static_cast<unsigned>(num_programs(p))), dim3(32 * WARPS_M * WARPS_N),
                sizeof(SharedTiles<BLOCK_M, BLOCK_N, BLOCK_K, STAGES, WARPS_M, WARPS_N>), stream,
                p);
}

__global__ void __launch_bounds__(128)
    list_tiles_kernel(TileCoordinates* tiles, int num_pid_m, int num_pid_n, int group_m) {
  const int64_t pid = static_cast<int64_t>(blockIdx.x) * 128 + threadIdx.x;
  if (pid >= static_cast<int64_t>(num_pid_m) * num_pid_n) return;
  tiles[pid] = tile_of(static_cast<int>(pid), num_pid_m, num_pid_n, group_m);
}

}  // namespace

cudaError_t list_tiles(
    TileCoordinates* tiles, int num_pid_m, int num_pid_n, int group_m, cudaStream_t stream) {
  if (refuse_list_tiles(tiles, num_pid_m, num_pid_n, group_m, stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  const int64_t programs = static_cast<int64_t>(num_pid_m) * num_pid_n;
  return launch(list_tiles_kernel, dim3(static_cast<unsigned>((programs + 127) / 128)), dim3(128),
                0, stream, tiles, num_pid_m, num_pid_n, group_m);
}

// One case for each line of kTileShapes.
cudaError_t grouped_gemm(const GroupedGemm& gemm, cudaStream_t stream) {
  if (refuse_grouped_gemm(gemm, stream) != nullptr) return cudaErrorInvalidValue;
  if (gemm.num_tokens == 0) return cudaSuccess;
  const auto is = [&](int block_m, int block_n, int block_k) {
    return gemm.block_m == block_m && gemm.tile.block_n == block_n && gemm.tile.block_k == block_k;
  };
  //                                     BLOCK_M   N   K  warps stages blocks
  if (is(16, 32, 64)) return launch_tile<16, 32, 64, 1, 2, 6, 4>(gemm, stream);
  if (is(32, 64, 64)) return launch_tile<32, 64, 64, 1, 4, 5, 3>(gemm, stream);
  if (is(64, 128, 64)) return launch_tile<64, 128, 64, 1, 4, 4, 2>(gemm, stream);
  if (is(64, 256, 32)) return launch_tile<64, 256, 32, 1, 4, 4, 2>(gemm, stream);
  if (is(128, 128, 32)) return launch_tile<128, 128, 32, 2, 2, 5, 2>(gemm, stream);
  if (is(128, 128, 64)) return launch_tile<128, 128, 64, 2, 2, 3, 2>(gemm, stream);
  if (is(128, 256, 64)) return launch_tile<128, 256, 64, 2, 4, 4, 1>(gemm, stream);
  return cudaErrorInvalidValue;
}

size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  const Tile tile = pick_tile(num_tokens, num_experts, top_k, hidden_size, intermediate_size);
  return layer_arrays(nullptr, num_tokens, num_experts, top_k, hidden_size, intermediate_size,
                      tile.block_m, false)
      .bytes;
}

cudaError_t moe_layer(__nv_bfloat16* out,
                      const __nv_bfloat16* x,
                      const float* logits,
                      const __nv_bfloat16* w13,
                      const __nv_bfloat16* w2,
                      int num_tokens,
                      int num_experts,
                      int top_k,
                      int hidden_size,
                      int intermediate_size,
                      bool renormalize,
                      void* workspace,
                      size_t workspace_bytes,
                      cudaStream_t stream) {
  if (refuse_moe_layer(out, x, logits, w13, w2, num_tokens, num_experts, top_k, hidden_size,
                       intermediate_size, renormalize, workspace, workspace_bytes,
                       stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const Tile tile = pick_tile(num_tokens, num_experts, top_k, hidden_size, intermediate_size);
  const LayerArrays arrays = layer_arrays(workspace, num_tokens, num_experts, top_k, hidden_size,
                                          intermediate_size, tile.block_m, false);
  cudaError_t status = upstream::route(arrays.topk_ids, arrays.topk_weights, logits, num_tokens,
                                       num_experts, top_k, renormalize, stream);
  if (status != cudaSuccess) return status;
  status =
      upstream::align(arrays.sorted_token_ids, arrays.expert_ids, arrays.num_tokens_post_padded,
                      arrays.topk_ids, num_tokens, top_k, num_experts, tile.block_m,
                      arrays.align_workspace, arrays.align_bytes, stream);
  if (status != cudaSuccess) return status;

  GroupedGemm gemm1 = {};  // h = silu(x * gate^T) * (x * up^T)
  gemm1.out = arrays.h;
  gemm1.a = x;
  gemm1.w = w13;
  gemm1.sorted_token_ids = arrays.sorted_token_ids;
  gemm1.expert_ids = arrays.expert_ids;
  gemm1.num_tokens_post_padded = arrays.num_tokens_post_padded;
  gemm1.num_tokens = num_tokens;
  gemm1.top_k = top_k;
  gemm1.num_experts = num_experts;
  gemm1.n = intermediate_size;
  gemm1.depth = hidden_size;
  gemm1.block_m = tile.block_m;
  gemm1.tile = tile.gemm1;
  gemm1.swiglu = true;
  status = m4::grouped_gemm(gemm1, stream);
  if (status != cudaSuccess) return status;

  GroupedGemm gemm2 = gemm1;  // y = (h * w2^T) * weight
  gemm2.out = arrays.y;
  gemm2.a = arrays.h;
  gemm2.w = w2;
  gemm2.topk_weights = arrays.topk_weights;
  gemm2.n = hidden_size;
  gemm2.depth = intermediate_size;
  gemm2.tile = tile.gemm2;
  gemm2.rows = Rows::kSlots;
  gemm2.swiglu = false;
  status = m4::grouped_gemm(gemm2, stream);
  if (status != cudaSuccess) return status;
  return upstream::combine(out, arrays.y, arrays.topk_ids, num_tokens, top_k, hidden_size,
                           num_experts, stream);
}

}  // namespace moe::DRILL_SIDE::m4
