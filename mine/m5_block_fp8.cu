// m5_block_fp8: quantise blocks of bf16 values to e4m3 codes with a scale each, and multiply codes.
//
// The quantiser reads a block once, finds its largest magnitude and divides. The GEMM is m2's, in
// m4's order. New is what happens every 128 of D: the partial sum of the codes is multiplied by the
// scales of its row of A and of its block of W and added to the total. Tiles are 128 wide and deep
// for that reason: one turn of the main loop is one scale block.
//
// The contract is drills/m5_block_fp8.h; the note is content/m5_block_fp8.md.
#include <drills/m5_block_fp8.h>

#include <cstring>

#include <drills/fp8_tile.h>
#include <drills/launch.h>
#include <drills/ptx.h>

namespace moe::DRILL_SIDE {

__host__ __device__ float power_of_two_at_least(float scale) {
  uint32_t bits = 0;  // sign, 8 bits of exponent, 23 of mantissa
  memcpy(&bits, &scale, sizeof bits);
  // Keep the exponent; add one to it if any bit of the mantissa is set. (log2 and exp2 would
  // round.)
  // BEGIN m5.power
  // about 1 line
  DRILL_TODO("m5.power");
  // END m5.power
  memcpy(&scale, &bits, sizeof bits);
  return scale;
}

namespace {

constexpr int kQuantizeWarps = 8;           // of a thread block
constexpr int kPerLane = kScaleBlock / 32;  // neighbouring values

// The largest of `amax` and the magnitudes of four values; NaN does not count.
__device__ __forceinline__ float largest_of(float amax, float4 v) {
  // BEGIN m5.amax
  // about 2 lines
  DRILL_TODO("m5.amax");
  return amax + v.x;
  // END m5.amax
}

// The scale of a block whose largest magnitude is `amax`, which may be 0 or infinite.
__device__ __forceinline__ float scale_of(float amax, bool power_of_two) {
  // BEGIN m5.scale
  // about 2 lines
  DRILL_TODO("m5.scale");
  return power_of_two ? power_of_two_at_least(amax) : amax;
  // END m5.scale
}

// The codes of v / scale. The constructor __nv_fp8x4_e4m3(float4) rounds to nearest even and
// saturates.
__device__ __forceinline__ __nv_fp8x4_e4m3 encode(float4 v, float scale) {
  // BEGIN m5.encode
  // about 1 line
  DRILL_TODO("m5.encode");
  v.x += scale;
  return __nv_fp8x4_e4m3(v);
  // END m5.encode
}

// Rows or weights, as matrices of n rows (1 for rows) with a scale for each ROWS x 128 values.
// WARPS warps share such a block; a lane holds four columns of every WARPS-th row in registers.
template <int ROWS>
__global__ void __launch_bounds__(32 * kQuantizeWarps)
    quantize_kernel(__nv_fp8_e4m3* codes,         // [matrices, n, D]
                    float* scales,                // [matrices, ceil(n/ROWS), ceil(D/128)]
                    const __nv_bfloat16* values,  // [matrices, n, D]
                    int n,
                    int depth,
                    bool power_of_two) {
  constexpr int WARPS = ROWS == 1 ? 1 : kQuantizeWarps;
  constexpr int ROWS_PER_LANE = ROWS / WARPS;
  __shared__ float warp_amax[kQuantizeWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int k_block = static_cast<int>(blockIdx.y) * (kQuantizeWarps / WARPS) + warp / WARPS;
  const int k_blocks = scale_blocks(depth);
  if (k_block >= k_blocks) return;  // only where no other warp shares the block
  const int n_blocks = (n + ROWS - 1) / ROWS;
  const int first_row = static_cast<int>(blockIdx.x) % n_blocks * ROWS + warp % WARPS;
  const int k = k_block * kScaleBlock + lane * kPerLane;
  const int64_t matrix = static_cast<int>(blockIdx.x) / n_blocks;
  const int64_t first = (matrix * n + first_row) * depth + k;
  const int64_t stride = static_cast<int64_t>(WARPS) * depth;  // to the lane's next row

  // Four values exist or none: D is a multiple of 16.
  const auto exists = [&](int i) { return first_row + i * WARPS < n && k < depth; };
  uint2 raw[ROWS_PER_LANE];
#pragma unroll
  for (int i = 0; i < ROWS_PER_LANE; ++i) {
    raw[i] =
        exists(i) ? *reinterpret_cast<const uint2*>(values + first + i * stride) : make_uint2(0, 0);
  }

  // The scale of the block, for every thread: from the largest magnitude of the lane, of the warp,
  // and, if WARPS > 1, of the thread block by way of warp_amax. __reduce_max_sync takes unsigned
  // numbers of 32 lanes; floats that are neither negative nor NaN order like their bits.
  // BEGIN m5.block
  // about 11 lines
  DRILL_TODO("m5.block");
  warp_amax[warp] = largest_of(0.0f, values_of(raw[0]));
  const float scale = scale_of(warp_amax[warp], power_of_two);
  // END m5.block

#pragma unroll
  for (int i = 0; i < ROWS_PER_LANE; ++i) {
    auto* to = reinterpret_cast<__nv_fp8x4_e4m3*>(codes + first + i * stride);
    if (exists(i)) *to = encode(values_of(raw[i]), scale);
  }
  const int64_t index = static_cast<int64_t>(blockIdx.x) * k_blocks + k_block;
  if (lane == 0 && warp % WARPS == 0) scales[index] = scale;
}

constexpr int BLOCK_N = kScaleBlock;
constexpr int BLOCK_K = kScaleBlock;
constexpr int STAGES = 3;
constexpr int GROUP_M = 32;
constexpr int kPadding = -1;

template <int BLOCK_M>  // 96 KB for BLOCK_M 128: the most that fits a GPU with 99 KB (sm_86, sm_89)
struct SharedTiles {
  __nv_fp8_e4m3 a[STAGES][BLOCK_M][BLOCK_K];  // (BLOCK_M, BLOCK_K) of gathered rows
  __nv_fp8_e4m3 w[STAGES][BLOCK_N][BLOCK_K];  // (BLOCK_N, BLOCK_K) of w[expert]
};

struct Problem {
  void* out;  // [T*K, N]
  bool out_fp32;
  const __nv_fp8_e4m3* a_codes;           // [T, D] or [T*K, D]
  const float* a_scales;                  // [T or T*K, k_blocks]
  const __nv_fp8_e4m3* w_codes;           // [E, N, D]
  const float* w_scales;                  // [E, n_blocks, k_blocks]
  const float* topk_weights;              // [T*K] or null
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

template <int BLOCK_M, int WARPS_M, int WARPS_N>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N) grouped_gemm_fp8_kernel(Problem p) {
  constexpr int WARP_M = BLOCK_M / WARPS_M;  // rows of the tile that one warp computes
  constexpr int WARP_N = BLOCK_N / WARPS_N;  // and columns
  constexpr int MMA_M = WARP_M / 16;
  constexpr int MMA_N = WARP_N / 8;
  constexpr int kRowsPerPass = 32 * WARPS_M * WARPS_N / kCodeChunks;
  constexpr int kPassesA = BLOCK_M / kRowsPerPass;
  constexpr int kPassesW = BLOCK_N / kRowsPerPass;

  auto& tiles = *dynamic_shared<SharedTiles<BLOCK_M>>();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int warp_m = thread / 32 % WARPS_M;
  const int warp_n = thread / 32 / WARPS_M;
  const int k_blocks = scale_blocks(p.depth), n_blocks = scale_blocks(p.n);

  const int pid = static_cast<int>(blockIdx.x);
  const int num_pid_m = *p.num_tokens_post_padded / BLOCK_M;
  if (pid >= num_pid_m * n_blocks) return;
  const int2 tile = tile_of(pid, num_pid_m, n_blocks, GROUP_M);
  const int expert = p.expert_ids[tile.x];
  if (expert < 0 || expert >= p.num_experts) return;
  const int first_row = tile.x * BLOCK_M, first_column = tile.y * BLOCK_N;

  // Each thread loads the same chunk of rows my_row, my_row + kRowsPerPass, ... of both tiles.
  const int my_row = thread / kCodeChunks, my_chunk = thread % kCodeChunks;
  const int64_t w_row = static_cast<int64_t>(expert) * p.n + first_column + my_row;
  const __nv_fp8_e4m3* w_codes = p.w_codes + w_row * p.depth;
  const int64_t w_stride = static_cast<int64_t>(kRowsPerPass) * p.depth;
  int a_rows[kPassesA];
#pragma unroll
  for (int i = 0; i < kPassesA; ++i) {
    const int flat_id = p.sorted_token_ids[first_row + my_row + i * kRowsPerPass];
    const int row = p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id;
    a_rows[i] = flat_id < p.num_ids ? row : kPadding;
  }
  const auto load_tiles = [&](int stage, int turn) {
    const int k = turn * BLOCK_K + my_chunk * kCodeChunk;
#pragma unroll
    for (int i = 0; i < kPassesA; ++i) {
      const bool valid = a_rows[i] != kPadding && k < p.depth;
      const int64_t offset = valid ? static_cast<int64_t>(a_rows[i]) * p.depth + k : 0;
      cp_async16(chunk_of(tiles.a[stage], my_row + i * kRowsPerPass, my_chunk), p.a_codes + offset,
                 valid);
    }
#pragma unroll
    for (int i = 0; i < kPassesW; ++i) {
      const bool valid = first_column + my_row + i * kRowsPerPass < p.n && k < p.depth;
      cp_async16(chunk_of(tiles.w[stage], my_row + i * kRowsPerPass, my_chunk),
                 valid ? w_codes + i * w_stride + k : p.w_codes, valid);
    }
  };

  // A lane holds sums of every 8th row of the tile from lane_row on, 2 * MMA_M of them.
  // scale_rows[i] is the row of a_scales that belongs to the i-th, kPadding for padding.
  const int lane_row = first_row + warp_m * WARP_M + lane / 4;
  int scale_rows[2 * MMA_M];
#pragma unroll
  for (int i = 0; i < 2 * MMA_M; ++i) {
    // BEGIN m5.scale_rows
    // about 3 lines
    DRILL_TODO("m5.scale_rows");
    scale_rows[i] = kPadding;
    // END m5.scale_rows
  }

  // What the partial sums of scale block `block` must be multiplied by: for each of the lane's rows
  // the scale of A times the scale of W. Offsets in int64.
  const auto read_scales = [&](float(&scales)[2 * MMA_M], int block) {
    // BEGIN m5.scales
    // about 7 lines
    DRILL_TODO("m5.scales");
    // END m5.scales
  };

  // Adds the product of the codes in ring buffer `stage` to `partial`, 32 of D at a time. A chunk
  // of 16 codes is to ldmatrix what one of eight 16-bit values is in m2.
  const auto multiply_tiles = [&](float(&partial)[MMA_M][MMA_N][4], int stage) {
    // BEGIN m5.multiply
    // about 22 lines
    DRILL_TODO("m5.multiply");
    // END m5.multiply
  };

  // The ring of m2, see there; one turn is one scale block. The scales of a turn are read before
  // its product, so that they arrive meanwhile.
  float total[MMA_M][MMA_N][4] = {};
  for (int turn = 0; turn < STAGES - 1; ++turn) {
    if (turn < k_blocks) load_tiles(turn, turn);
    cp_async_commit();
  }
  for (int turn = 0; turn < k_blocks; ++turn) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // this tile has arrived for all; all are done with the buffer loaded next
    if (turn + STAGES - 1 < k_blocks) load_tiles((turn + STAGES - 1) % STAGES, turn + STAGES - 1);
    cp_async_commit();
    // Multiply the tiles of ring buffer turn % STAGES into sums that start at 0, and add each,
    // times its scale, to `total`. Registers c = 0, 1 belong to the row of scale 2i, c = 2, 3 to
    // that of 2i + 1.
    // BEGIN m5.promote
    // about 10 lines
    DRILL_TODO("m5.promote");
    float scales[2 * MMA_M], partial[MMA_M][MMA_N][4] = {};
    read_scales(scales, turn), multiply_tiles(partial, turn % STAGES);
    // END m5.promote
  }

  // Columns 2t and 2t + 1 (t = lane % 4) of piece j of the lane's i-th row are registers i % 2 * 2
  // and the next of total[i / 2][j]. Times the routing weight, if there is one, they go to row
  // flat_id of `out`.
#pragma unroll
  for (int i = 0; i < 2 * MMA_M; ++i) {
    // BEGIN m5.store
    // about 17 lines
    DRILL_TODO("m5.store");
    // END m5.store
  }
}

}  // namespace

cudaError_t quantize_rows(__nv_fp8_e4m3* codes,
                          float* scales,
                          const __nv_bfloat16* values,
                          int num_rows,
                          int depth,
                          bool power_of_two,
                          cudaStream_t stream) {
  const char* rule =
      refuse_quantize_rows(codes, scales, values, num_rows, depth, power_of_two, stream);
  if (rule != nullptr) return cudaErrorInvalidValue;
  if (num_rows == 0) return cudaSuccess;
  const dim3 grid(num_rows, (scale_blocks(depth) + kQuantizeWarps - 1) / kQuantizeWarps);
  return launch(quantize_kernel<1>, grid, dim3(32 * kQuantizeWarps), 0, stream, codes, scales,
                values, 1, depth, power_of_two);
}

cudaError_t quantize_weights(__nv_fp8_e4m3* codes,
                             float* scales,
                             const __nv_bfloat16* w,
                             int num_experts,
                             int n,
                             int depth,
                             bool power_of_two,
                             cudaStream_t stream) {
  const char* rule =
      refuse_quantize_weights(codes, scales, w, num_experts, n, depth, power_of_two, stream);
  if (rule != nullptr) return cudaErrorInvalidValue;
  const dim3 grid(num_experts * scale_blocks(n), scale_blocks(depth));
  return launch(quantize_kernel<kScaleBlock>, grid, dim3(32 * kQuantizeWarps), 0, stream, codes,
                scales, w, n, depth, power_of_two);
}

cudaError_t grouped_gemm_fp8(void* out,
                             bool out_fp32,
                             const __nv_fp8_e4m3* a_codes,
                             const float* a_scales,
                             const __nv_fp8_e4m3* w_codes,
                             const float* w_scales,
                             const float* topk_weights,
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
  const char* rule =
      refuse_grouped_gemm_fp8(out, out_fp32, a_codes, a_scales, w_codes, w_scales, topk_weights,
                              sorted_token_ids, expert_ids, num_tokens_post_padded, num_tokens,
                              top_k, num_experts, n, depth, block_m, rows, stream);
  if (rule != nullptr) return cudaErrorInvalidValue;
  if (num_tokens == 0) return cudaSuccess;
  // clang-format off
  const Problem p = {out, out_fp32, a_codes, a_scales, w_codes, w_scales, topk_weights,
                     sorted_token_ids, expert_ids, num_tokens_post_padded, num_tokens * top_k,
                     top_k, num_experts, n, depth, rows};
  // clang-format on
  const size_t capacity = align_capacity(num_tokens, top_k, num_experts, block_m);
  const dim3 grid(static_cast<int>(capacity) / block_m * scale_blocks(n));
  const auto start = [&](void (*kernel)(Problem), int threads, size_t smem_bytes) {
    return launch(kernel, grid, dim3(threads), smem_bytes, stream, p);
  };
  // A warp computes 16 or 32 rows by 32 or 64 columns.
  if (block_m == 16) return start(grouped_gemm_fp8_kernel<16, 1, 4>, 128, sizeof(SharedTiles<16>));
  if (block_m == 32) return start(grouped_gemm_fp8_kernel<32, 1, 4>, 128, sizeof(SharedTiles<32>));
  if (block_m == 64) return start(grouped_gemm_fp8_kernel<64, 2, 2>, 128, sizeof(SharedTiles<64>));
  return start(grouped_gemm_fp8_kernel<128, 4, 2>, 256, sizeof(SharedTiles<128>));
}

}  // namespace moe::DRILL_SIDE
