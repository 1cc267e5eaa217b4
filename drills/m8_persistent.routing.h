// m8_persistent.routing.h: given to m8. What its kernels hand to each other, and route: m1's top-k,
// which also counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include <drills/choose_experts.h>
#include <drills/hopper.h>
#include <drills/layer_arrays.h>
#include <drills/m8_persistent.h>

namespace moe::DRILL_SIDE::m8 {

inline constexpr int kUnit = 16;      // an expert's rows, and a tile's, are a multiple of this
inline constexpr int kTokens1 = 128;  // of a whole tile of GEMM1
inline constexpr int kMaxTokens1 = kTokens1 + kUnit;  // of a long one

// A run of token tiles that belong to one expert. The table has one entry for each tile, so that a
// tile's number finds its run with one load.
struct alignas(16) Run {
  int expert;
  int first_tile;  // number of the run's first token tile
  int num_tiles;
  int first_row;   // of the expert, in the sorted order
  int tile_rows;   // of all its tiles but the last and the long ones
  int rows;        // of the expert, a multiple of kUnit
  int ready_when;  // GEMM2: reports of GEMM1 that complete the expert's rows of h
  int long_tiles;  // so many of the first have kUnit rows more than tile_rows
};

struct Sizes {
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
};

struct Arrays {
  int32_t* next_tile;     // [2] of GEMM1 and GEMM2: tiles handed out by the counter
  int32_t* ready;         // [E] reports of finished parts of the expert's rows of h
  int32_t* topk_ids;      // [T*K]
  int32_t* counts;        // [route blocks, E] rows that a block of tokens gives to an expert
  float* topk_weights;    // [T*K]
  int32_t* sorted_row;    // [T*K] row of h and y
  int32_t* sorted_token;  // [max_rows] its inverse, -1 for padding
  Run* runs[2];           // [max_tiles] of GEMM1 and of GEMM2
  int32_t* num_tiles;     // [2] token tiles of each
  __nv_bfloat16* h;       // [max_rows, I]
  __nv_bfloat16* y;       // [max_rows, H]
  size_t max_rows;
  size_t max_tiles;
  size_t bytes;
};

// Tokens of the longest tile of GEMM2: enough for most experts if all get the same.
inline int max_tokens_of(int num_tokens, int num_experts, int top_k) {
  const int64_t rows = static_cast<int64_t>(num_tokens) * top_k / num_experts;
  if (rows <= 48) return 64;
  return rows <= 112 ? 128 : 256;
}

// Blocks of the GEMMs that share what they load. Where most experts have one token tile there is
// little to share, and two blocks wait for each other.
inline int cluster_of(int num_tokens, int num_experts, int top_k) {
  return static_cast<int64_t>(num_tokens) * top_k / num_experts >= 192 ? 2 : 1;  // measured
}

// Route and place cut the tokens into the same blocks, at most 128: place reads all their counts.
inline int tokens_of_route_block(int num_tokens) {
  constexpr int kMaxRouteBlocks = 128;
  const int tokens = (num_tokens + kMaxRouteBlocks - 1) / kMaxRouteBlocks;
  return tokens < 16 ? 16 : tokens;
}
inline int route_blocks(int num_tokens) {
  const int tokens = tokens_of_route_block(num_tokens);
  return (num_tokens + tokens - 1) / tokens;
}

inline Arrays arrays_of(void* workspace,
                        int num_tokens,
                        int num_experts,
                        int top_k,
                        int hidden_size,
                        int intermediate_size) {
  const size_t ids = static_cast<size_t>(num_tokens) * static_cast<size_t>(top_k);
  const size_t experts = static_cast<size_t>(num_experts);
  const size_t busy = ids < experts ? ids : experts;
  const int max_tokens = max_tokens_of(num_tokens, num_experts, top_k);
  const size_t tile = static_cast<size_t>(max_tokens < kTokens1 ? max_tokens : kTokens1);
  WorkspaceParts parts(workspace);
  Arrays a = {};
  a.max_rows = ids + busy * (kUnit - 1);
  a.max_tiles = a.max_rows / tile + busy;
  a.next_tile = parts.take<int32_t>(2);
  a.ready = parts.take<int32_t>(experts);
  a.counts = parts.take<int32_t>(experts * static_cast<size_t>(route_blocks(num_tokens)));
  a.topk_ids = parts.take<int32_t>(ids);
  a.topk_weights = parts.take<float>(ids);
  a.sorted_row = parts.take<int32_t>(ids);
  a.sorted_token = parts.take<int32_t>(a.max_rows);
  for (Run*& runs : a.runs) runs = parts.take<Run>(a.max_tiles);
  a.num_tiles = parts.take<int32_t>(2);
  a.h = parts.take<__nv_bfloat16>(a.max_rows * static_cast<size_t>(intermediate_size));
  a.y = parts.take<__nv_bfloat16>(a.max_rows * static_cast<size_t>(hidden_size));
  a.bytes = parts.bytes();
  return a;
}

// ---- Route.

inline constexpr int kRouteThreads = 512;

// Yours: all threads of one block of route set what the later kernels count in to 0.
__device__ void reset_counters(const Arrays& a, int num_experts);

// Fills topk_ids and topk_weights, and counts[block][expert].
template <int PER_LANE>
__global__ void __launch_bounds__(kRouteThreads) route_kernel(Arrays a,
                                                              const float* logits,  // [T, E]
                                                              int num_tokens,
                                                              int num_experts,
                                                              int top_k,
                                                              int block_tokens,
                                                              bool renormalize) {
  __shared__ int block_counts[kMaxExperts];
  griddepcontrol_launch_dependents();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize;
  for (int e = thread; e < num_experts; e += kRouteThreads) block_counts[e] = 0;
  __syncthreads();
  for (int i = thread / kWarpSize; i < block_tokens; i += kRouteThreads / kWarpSize) {
    const int token = static_cast<int>(blockIdx.x) * block_tokens + i;
    if (token >= num_tokens) break;
    int id = 0;
    float weight = 0.0f;
    choose_experts<PER_LANE>(logits + static_cast<int64_t>(token) * num_experts, num_experts, top_k,
                             renormalize, id, weight);
    if (lane < top_k) {
      const int64_t position = static_cast<int64_t>(token) * top_k + lane;
      a.topk_ids[position] = id;
      a.topk_weights[position] = weight;
      atomicAdd(&block_counts[id], 1);
    }
  }
  __syncthreads();
  for (int e = thread; e < num_experts; e += kRouteThreads) {
    a.counts[static_cast<int64_t>(blockIdx.x) * num_experts + e] = block_counts[e];
  }
  if (blockIdx.x == 0) reset_counters(a, num_experts);
}

template <int PER_LANE>
cudaError_t launch_route(
    const Arrays& a, const float* logits, const Sizes& s, bool renormalize, cudaStream_t stream) {
  return launch(route_kernel<PER_LANE>, dim3(static_cast<unsigned>(route_blocks(s.num_tokens))),
                dim3(kRouteThreads), 0, stream, a, logits, s.num_tokens, s.num_experts, s.top_k,
                tokens_of_route_block(s.num_tokens), renormalize);
}

inline cudaError_t launch_route(
    const Arrays& a, const float* logits, const Sizes& s, bool renormalize, cudaStream_t stream) {
  if (s.num_experts <= 32) return launch_route<1>(a, logits, s, renormalize, stream);
  if (s.num_experts <= 64) return launch_route<2>(a, logits, s, renormalize, stream);
  if (s.num_experts <= 128) return launch_route<4>(a, logits, s, renormalize, stream);
  if (s.num_experts <= 256) return launch_route<8>(a, logits, s, renormalize, stream);
  return launch_route<32>(a, logits, s, renormalize, stream);
}

}  // namespace moe::DRILL_SIDE::m8
