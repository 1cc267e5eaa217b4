// m3_weighted_epilogue: SwiGLU, the routing weight in the epilogue of GEMM2, the sum over a token's
// slots, and the whole layer.
//
// New since m2: two small kernels that only move memory, 16 bytes at a time; one multiplication in
// the epilogue of the GEMM; and the order of calls that makes a layer of all this. The main loop of
// the GEMM is m2's, letter by letter.
//
// The contract is drills/m3_weighted_epilogue.h; the note is content/m3_weighted_epilogue.md.
#include <drills/m3_weighted_epilogue.h>

#include <drills/chunk.h>
#include <drills/launch.h>
#include <drills/layer_arrays.h>
#include <drills/ptx.h>
#include <drills/upstream.h>

namespace moe::DRILL_SIDE {
namespace {

constexpr int kThreads = 128;
constexpr int BLOCK_N = 64;
constexpr int BLOCK_K = 32;
constexpr int STAGES = 3;
constexpr int kChunksPerRow = BLOCK_K / kChunk;  // 4 threads load one row of a tile
constexpr int kRowsPerPass = kThreads / kChunksPerRow;
constexpr int kRowPitch = BLOCK_K + 8;  // 80 bytes: ldmatrix without bank conflicts, see m2

// One block a row of h.
__global__ void __launch_bounds__(kThreads)
    silu_and_mul_kernel(__nv_bfloat16* h,              // [T*K, I]
                        const __nv_bfloat16* gate_up,  // [T*K, 2I]
                        int intermediate_size) {
  const int64_t row = blockIdx.x;
  for (int column = static_cast<int>(threadIdx.x) * kChunk; column < intermediate_size;
       column += kThreads * kChunk) {
    // Columns column .. column + 7 of row `row` of h: silu(gate) * up, silu(g) = g / (1 + e^-g).
    // The first I columns of a row of gate_up are gate, the last I are up. load_chunk and
    // store_chunk move eight columns. Where e^-g is infinite the quotient is a fine 0;
    // e^g / (1 + e^g) would be inf / inf.
    // BEGIN m3.swiglu
    const __nv_bfloat16* gate_row = gate_up + row * 2 * intermediate_size;
    float gate[kChunk];
    float up[kChunk];
    load_chunk(gate, gate_row + column);
    load_chunk(up, gate_row + intermediate_size + column);
    float result[kChunk];
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      result[i] = __fdividef(gate[i], 1.0f + __expf(-gate[i])) * up[i];
    }
    store_chunk(h + row * intermediate_size + column, result);
    // END m3.swiglu
  }
}

template <int BLOCK_M>
struct SharedTiles {
  __nv_bfloat16 a[STAGES][BLOCK_M][kRowPitch];  // (BLOCK_M, BLOCK_K) of gathered rows
  __nv_bfloat16 w[STAGES][BLOCK_N][kRowPitch];  // (BLOCK_N, BLOCK_K) of w[expert]
};

struct Problem {
  __nv_bfloat16* out;                     // [T*K, N]
  const __nv_bfloat16* a;                 // [T, D] or [T*K, D]
  const __nv_bfloat16* w;                 // [E, N, D]
  const float* topk_weights;              // [T*K]
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
__global__ void __launch_bounds__(kThreads) grouped_gemm_weighted_kernel(Problem p) {
  // Preconditions
  constexpr int WARPS_M = BLOCK_M >= 32 ? 2 : 1;
  constexpr int WARPS_N = kThreads / 32 / WARPS_M;
  constexpr int WARP_M = BLOCK_M / WARPS_M;  // rows of the tile that one warp computes
  constexpr int WARP_N = BLOCK_N / WARPS_N;  // and columns
  constexpr int MMA_M = WARP_M / 16;
  constexpr int MMA_N = WARP_N / 8;
  static_assert(WARP_M % 16 == 0 && WARP_N % 16 == 0, "a warp computes whole 16 x 16 pieces");

  auto& tiles = *dynamic_shared<SharedTiles<BLOCK_M>>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp_m = thread / 32 % WARPS_M;
  const int warp_n = thread / 32 / WARPS_M;
  const int pid_m = static_cast<int>(blockIdx.x);
  const int first_row = pid_m * BLOCK_M;
  const int first_column = static_cast<int>(blockIdx.y) * BLOCK_N;

  // From here to the end of the main loop all is as in m2, where it is explained.
  // BEGIN m3.gather (given)
  if (first_row >= *p.num_tokens_post_padded) return;
  const int expert = p.expert_ids[pid_m];
  if (expert < 0 || expert >= p.num_experts) return;

  const int my_row = thread / kChunksPerRow;
  const int my_k = thread % kChunksPerRow * kChunk;
  constexpr int kPassesA = (BLOCK_M + kRowsPerPass - 1) / kRowsPerPass;
  constexpr int kPassesW = BLOCK_N / kRowsPerPass;
  const __nv_bfloat16* a_rows[kPassesA] = {};
#pragma unroll
  for (int i = 0; i < kPassesA; ++i) {
    const int row = my_row + i * kRowsPerPass;
    const int flat_id = row < BLOCK_M ? p.sorted_token_ids[first_row + row] : p.num_ids;
    if (flat_id < p.num_ids) {
      const int a_row = p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id;
      a_rows[i] = p.a + static_cast<int64_t>(a_row) * p.depth;
    }
  }
  const __nv_bfloat16* w_expert = p.w + static_cast<int64_t>(expert) * p.n * p.depth;
  // END m3.gather

  // BEGIN m3.mainloop (given)
  const auto load_tiles = [&](int stage, int k0) {
    const int k = k0 + my_k;
#pragma unroll
    for (int i = 0; i < kPassesA; ++i) {
      const int row = my_row + i * kRowsPerPass;
      if (row >= BLOCK_M) break;
      const bool valid = a_rows[i] != nullptr && k < p.depth;
      cp_async16(&tiles.a[stage][row][my_k], valid ? a_rows[i] + k : p.a, valid);
    }
#pragma unroll
    for (int i = 0; i < kPassesW; ++i) {
      const int row = my_row + i * kRowsPerPass;
      const int column = first_column + row;
      const bool valid = column < p.n && k < p.depth;
      cp_async16(&tiles.w[stage][row][my_k],
                 valid ? w_expert + static_cast<int64_t>(column) * p.depth + k : p.w, valid);
    }
  };

  float accumulators[MMA_M][MMA_N][4] = {};
  const auto multiply_tiles = [&](int stage) {
#pragma unroll
    for (int k = 0; k < BLOCK_K; k += 16) {
      uint32_t a[MMA_M][4];
      uint32_t b[MMA_N / 2][4];
#pragma unroll
      for (int i = 0; i < MMA_M; ++i) {
        const int row = warp_m * WARP_M + i * 16 + lane % 16;
        ldmatrix_x4(a[i], &tiles.a[stage][row][k + lane / 16 * 8]);
      }
#pragma unroll
      for (int j = 0; j < MMA_N / 2; ++j) {
        const int row = warp_n * WARP_N + j * 16 + lane / 16 * 8 + lane % 8;
        ldmatrix_x4(b[j], &tiles.w[stage][row][k + lane / 8 % 2 * 8]);
      }
#pragma unroll
      for (int i = 0; i < MMA_M; ++i) {
#pragma unroll
        for (int j = 0; j < MMA_N; ++j) {
          const uint32_t column[2] = {b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]};
          mma_m16n8k16(accumulators[i][j], a[i], column);
        }
      }
    }
  };

  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  for (int turn = 0; turn < STAGES - 1; ++turn) {
    if (turn < turns) load_tiles(turn, turn * BLOCK_K);
    cp_async_commit();
  }
  for (int turn = 0; turn < turns; ++turn) {
    cp_async_wait<STAGES - 2>();
    __syncthreads();  // all copies of this tile are there; the buffer to be filled is free
    const int next = turn + STAGES - 1;
    if (next < turns) load_tiles(next % STAGES, next * BLOCK_K);
    cp_async_commit();
    multiply_tiles(turn % STAGES);
  }
  // END m3.mainloop

#pragma unroll
  for (int i = 0; i < MMA_M; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp_m * WARP_M + i * 16 + half * 8 + lane / 4;
      const int flat_id = p.sorted_token_ids[first_row + row];
      if (flat_id >= p.num_ids) continue;
      __nv_bfloat16* out_row = p.out + static_cast<int64_t>(flat_id) * p.n;
      const int warp_column = first_column + warp_n * WARP_N + lane % 4 * 2;
      // out_row is the row of `flat_id`. Its columns warp_column + 8 * j and the next, for all j
      // below MMA_N, are registers 2 * half and 2 * half + 1 of accumulators[i][j]. Multiply them
      // by the weight of this row, in fp32, and store them rounded; columns at or behind N are not
      // written.
      // BEGIN m3.weight
      const float weight = p.topk_weights[flat_id];
#pragma unroll
      for (int j = 0; j < MMA_N; ++j) {
        const int column = warp_column + j * 8;
        if (column >= p.n) continue;
        const float* pair = &accumulators[i][j][half * 2];
        *reinterpret_cast<__nv_bfloat162*>(out_row + column) =
            __floats2bfloat162_rn(pair[0] * weight, pair[1] * weight);
      }
      // END m3.weight
    }
  }
}

// One block a token. No atomics: the slots of a token lie side by side, and one thread adds all K
// values of its columns, always in the same order.
__global__ void __launch_bounds__(kThreads) combine_kernel(__nv_bfloat16* out,       // [T, H]
                                                           const __nv_bfloat16* y,   // [T*K, H]
                                                           const int32_t* topk_ids,  // [T, K]
                                                           int top_k,
                                                           int hidden_size,
                                                           int num_experts) {
  const int64_t token = blockIdx.x;
  for (int column = static_cast<int>(threadIdx.x) * kChunk; column < hidden_size;
       column += kThreads * kChunk) {
    // Columns column .. column + 7 of row `token` of out: the sum of the rows of y of this token,
    // in fp32, slots in ascending order, one rounding at the end. Leave out slots whose id in
    // topk_ids is outside [0, E): nobody wrote their rows.
    // BEGIN m3.combine
    float sums[kChunk] = {};
    for (int slot = 0; slot < top_k; ++slot) {
      const int64_t flat_id = token * top_k + slot;
      const int32_t expert = topk_ids[flat_id];
      if (expert < 0 || expert >= num_experts) continue;
      float values[kChunk];
      load_chunk(values, y + flat_id * hidden_size + column);
#pragma unroll
      for (int i = 0; i < kChunk; ++i) sums[i] += values[i];
    }
    store_chunk(out + token * hidden_size + column, sums);
    // END m3.combine
  }
}

template <int BLOCK_M>
cudaError_t launch_weighted(const Problem& p, int num_blocks, cudaStream_t stream) {
  const dim3 grid(num_blocks, (p.n + BLOCK_N - 1) / BLOCK_N);
  return launch(grouped_gemm_weighted_kernel<BLOCK_M>, grid, dim3(kThreads),
                sizeof(SharedTiles<BLOCK_M>), stream, p);
}

}  // namespace

cudaError_t silu_and_mul(__nv_bfloat16* h,
                         const __nv_bfloat16* gate_up,
                         int num_ids,
                         int intermediate_size,
                         cudaStream_t stream) {
  if (refuse_silu_and_mul(h, gate_up, num_ids, intermediate_size, stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_ids == 0) return cudaSuccess;
  return launch(silu_and_mul_kernel, dim3(num_ids), dim3(kThreads), 0, stream, h, gate_up,
                intermediate_size);
}

cudaError_t grouped_gemm_weighted(__nv_bfloat16* out,
                                  const __nv_bfloat16* a,
                                  const __nv_bfloat16* w,
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
  if (refuse_grouped_gemm_weighted(out, a, w, topk_weights, sorted_token_ids, expert_ids,
                                   num_tokens_post_padded, num_tokens, top_k, num_experts, n, depth,
                                   block_m, rows, stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const Problem p = {out,
                     a,
                     w,
                     topk_weights,
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
  auto* launch_tile = launch_weighted<128>;
  if (block_m == 16) launch_tile = launch_weighted<16>;
  if (block_m == 32) launch_tile = launch_weighted<32>;
  if (block_m == 64) launch_tile = launch_weighted<64>;
  return launch_tile(p, num_blocks, stream);
}

cudaError_t combine(__nv_bfloat16* out,
                    const __nv_bfloat16* y,
                    const int32_t* topk_ids,
                    int num_tokens,
                    int top_k,
                    int hidden_size,
                    int num_experts,
                    cudaStream_t stream) {
  if (refuse_combine(out, y, topk_ids, num_tokens, top_k, hidden_size, num_experts, stream) !=
      nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  return launch(combine_kernel, dim3(num_tokens), dim3(kThreads), 0, stream, out, y, topk_ids,
                top_k, hidden_size, num_experts);
}

size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (refuse_sizes(num_tokens, num_experts, top_k) != nullptr) return 0;
  const int block_m = layer_block_m(num_tokens, top_k, num_experts);
  return layer_arrays(nullptr, num_tokens, num_experts, top_k, hidden_size, intermediate_size,
                      block_m)
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
  const int block_m = layer_block_m(num_tokens, top_k, num_experts);
  const LayerArrays arrays = layer_arrays(workspace, num_tokens, num_experts, top_k, hidden_size,
                                          intermediate_size, block_m);

  // Six calls, each reading what those before it left in `arrays`: upstream::route,
  // upstream::align, GEMM1 (upstream::grouped_gemm; [T*K, 2I] from x), SwiGLU, GEMM2 with the
  // weights ([T*K, H] from h), combine. A stream does its work in order, so nothing is waited for.
  // The first call that fails ends the layer: what it returned is in `status`.
  cudaError_t status = cudaSuccess;
  // BEGIN m3.layer
  status = upstream::route(arrays.topk_ids, arrays.topk_weights, logits, num_tokens, num_experts,
                           top_k, renormalize, stream);
  if (status != cudaSuccess) return status;
  status = upstream::align(
      arrays.sorted_token_ids, arrays.expert_ids, arrays.num_tokens_post_padded, arrays.topk_ids,
      num_tokens, top_k, num_experts, block_m, arrays.align_workspace, arrays.align_bytes, stream);
  if (status != cudaSuccess) return status;
  status =
      upstream::grouped_gemm(arrays.gate_up, x, w13, arrays.sorted_token_ids, arrays.expert_ids,
                             arrays.num_tokens_post_padded, num_tokens, top_k, num_experts,
                             2 * intermediate_size, hidden_size, block_m, Rows::kTokens, stream);
  if (status != cudaSuccess) return status;
  status = silu_and_mul(arrays.h, arrays.gate_up, num_tokens * top_k, intermediate_size, stream);
  if (status != cudaSuccess) return status;
  status = grouped_gemm_weighted(arrays.y, arrays.h, w2, arrays.topk_weights,
                                 arrays.sorted_token_ids, arrays.expert_ids,
                                 arrays.num_tokens_post_padded, num_tokens, top_k, num_experts,
                                 hidden_size, intermediate_size, block_m, Rows::kSlots, stream);
  if (status != cudaSuccess) return status;
  status =
      combine(out, arrays.y, arrays.topk_ids, num_tokens, top_k, hidden_size, num_experts, stream);
  // END m3.layer
  return status;
}

}  // namespace moe::DRILL_SIDE
