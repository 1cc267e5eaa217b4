// m10_fp8_hopper.tiles.h: given to m10. The workspace, what a block of the GEMMs holds, arithmetic
// on finished sums, and the host side of the bulk copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include <drills/hopper.h>
#include <drills/layer_arrays.h>
#include <drills/m10_fp8_hopper.h>
#include <drills/persistent.h>
#include <drills/wgmma.h>

namespace moe::DRILL_SIDE::m10 {

// ---- What the steps of the layer hand to each other. "Sorted" rows are those of align.

struct Arrays {
  int32_t* topk_ids;                // [T, K]
  float* topk_weights;              // [T, K]
  int32_t* sorted_token_ids;        // [rows]
  int32_t* expert_ids;              // [rows / 128]
  int32_t* num_tokens_post_padded;  // [1]
  void* align_workspace;            // [align_bytes]
  __nv_fp8_e4m3* x_codes;           // [T, H]
  float* x_scales;                  // [T, H/128]
  int32_t* sorted_row;              // [T*K] the sorted row of a slot
  int32_t* sorted_token;            // [rows] the token of a sorted row, -1 for padding
  int32_t* used_rows;               // [rows / 128] a block's rows that are used, 16 to 128
  float* sorted_scales;             // [H/128, rows] of x, in sorted order
  __nv_fp8_e4m3* h_codes;           // [rows, I]
  float* h_scales;                  // [I/128, rows]
  void* y;                          // [rows, H] bf16 or float
  uint32_t* next_tile;              // [2] the counters of tiles of GEMM1 and GEMM2
  int32_t* ready;                   // [rows / 128] reports of stored parts of a block's h
  size_t rows;                      // the capacity of align
  size_t align_bytes;
  size_t bytes;  // of all
};

struct Sizes {
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
};

inline Arrays arrays_of(void* workspace, const Sizes& s, bool out_fp32) {
  const auto tokens = static_cast<size_t>(s.num_tokens);
  const size_t ids = tokens * static_cast<size_t>(s.top_k);
  const auto hidden = static_cast<size_t>(s.hidden_size);
  const auto inner = static_cast<size_t>(s.intermediate_size);
  WorkspaceParts parts(workspace);
  Arrays a = {};
  a.rows = align_capacity(s.num_tokens, s.top_k, s.num_experts, kFp8BlockM);
  a.align_bytes = upstream::align_workspace_bytes(s.num_tokens, s.top_k, s.num_experts, kFp8BlockM);
  a.topk_ids = parts.take<int32_t>(ids);
  a.topk_weights = parts.take<float>(ids);
  a.sorted_token_ids = parts.take<int32_t>(a.rows);
  a.expert_ids = parts.take<int32_t>(a.rows / kFp8BlockM);
  a.num_tokens_post_padded = parts.take<int32_t>(1);
  a.align_workspace = parts.take<unsigned char>(a.align_bytes);
  a.x_codes = parts.take<__nv_fp8_e4m3>(tokens * hidden);
  a.x_scales = parts.take<float>(tokens * hidden / kScaleBlock);
  a.sorted_row = parts.take<int32_t>(ids);
  a.sorted_token = parts.take<int32_t>(a.rows);
  a.used_rows = parts.take<int32_t>(a.rows / kFp8BlockM);
  a.sorted_scales = parts.take<float>(a.rows * hidden / kScaleBlock);
  a.h_codes = parts.take<__nv_fp8_e4m3>(a.rows * inner);
  a.h_scales = parts.take<float>(a.rows * inner / kScaleBlock);
  a.y = parts.take<unsigned char>(a.rows * hidden * (out_fp32 ? sizeof(float) : 2));
  a.next_tile = parts.take<uint32_t>(2);
  a.ready = parts.take<int32_t>(a.rows / kFp8BlockM);
  a.bytes = parts.bytes();
  return a;
}

// ---- A block of the GEMMs.

enum class Output { kCodes, kBf16, kFp32 };  // GEMM1 stores codes; GEMM2 the others

inline constexpr int BLOCK_M = kFp8BlockM;
inline constexpr int BLOCK_N = 256;          // rows of W: two halves with a scale each
inline constexpr int BLOCK_K = kScaleBlock;  // 128 bytes: one row of a swizzled tile
inline constexpr int STAGES = 4;
inline constexpr int GROUP_M = 4;  // rows of tiles that are walked together, see m4
inline constexpr int kWarpSize = 32;
inline constexpr int kWarpgroup = 128;
inline constexpr int kThreads = 3 * kWarpgroup;
inline constexpr int kConsumerWarps = 8;
inline constexpr int kHalf = 128;  // rows of W in one bulk copy and under one scale
inline constexpr int kSlab = 64;   // rows of one consumer warpgroup
inline constexpr int kUnit = 16;   // rows of one warp and of one bulk store, of 128 bytes each
inline constexpr int kChunk = 16;  // codes in 16 bytes
inline constexpr int kChunksOfRow = BLOCK_K / kChunk;
inline constexpr int kGathered = 8;         // rows of A whose chunks one producer thread copies
inline constexpr int kHalfSums = 64;        // sums of a thread for one half
inline constexpr int kScaleTurns = 16;      // of W's scales that are fetched together
inline constexpr int kProducerBarrier = 3;  // a named barrier, of GEMM1's producer

// What a stage is about; it travels with the stage, for the consumers don't know the order of
// tiles.
struct Note {
  int m;  // of the tile, or -1 after the last one
  int n;
  int rows;           // of the tile's rows, which are used: a multiple of kUnit
  float w_scales[2];  // of the two halves of W in this stage
};

struct SharedTiles {
  unsigned char w[STAGES][BLOCK_N][BLOCK_K];  // swizzled, as are all tiles here
  unsigned char a[STAGES][BLOCK_M][BLOCK_K];
  unsigned char slabs[2][2][kSlab][128];  // two for each consumer warpgroup
  float a_scales[STAGES][BLOCK_M];
  Note notes[STAGES];
  int next_pid;  // from thread 0 of GEMM1's producer to its others
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
};

// The arguments of one GEMM.
struct Problem {
  const __nv_fp8_e4m3* x_codes;           // GEMM1: A, gathered
  const int32_t* sorted_token;            // GEMM1
  const float* a_scales;                  // [depth / 128, rows]
  const float* w_scales;                  // [E, rows of w / 128, depth / 128]
  const int32_t* expert_ids;              // [rows / 128]
  const int32_t* num_tokens_post_padded;  // [1]
  const int32_t* used_rows;               // [rows / 128]
  float* h_scales;                        // GEMM1: [I/128, rows]
  float* y;                               // GEMM2 with fp32 output
  int64_t rows;                           // the capacity
  uint32_t* next_tile;                    // the counter of tiles
  int32_t* ready;                         // [rows / 128]
  int columns;                            // of the output
  int depth;                              // of the reduction
};

// ---- Arithmetic on finished sums.

// h = silu(gate) * up for four columns of one row, with one reciprocal for all four: see m7. All
// four are of one row, so that a row's h doesn't depend on which rows lie beside it.
__device__ inline void silu_and_mul(const float (&gate)[4], const float (&up)[4], float (&h)[4]) {
  float g[4];
  float a[4];  // 1 + e^-gate
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    g[i] = gate[i] < -20.0f ? -20.0f : gate[i];  // NaN stays
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

// The e4m3 codes of two values, the first in the low byte: nearest even, saturating, NaN is 0x7f.
__device__ inline uint32_t codes_of(float low, float high) {
  return __nv_fp8x2_e4m3(make_float2(low, high)).__x;
}
__device__ inline uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// Eight neighbouring values of y, each read once; and of out.
inline constexpr int kCombined = 8;
__device__ inline void load_values(float (&values)[kCombined], const __nv_bfloat16* from) {
  const uint4 raw = __ldcs(reinterpret_cast<const uint4*>(from));
  const uint32_t pairs[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    values[2 * i] = __uint_as_float(pairs[i] << 16);
    values[2 * i + 1] = __uint_as_float(pairs[i] & 0xffff0000u);
  }
}
__device__ inline void load_values(float (&values)[kCombined], const float* from) {
#pragma unroll
  for (int i = 0; i < kCombined; i += 4) {
    const float4 four = __ldcs(reinterpret_cast<const float4*>(from + i));
    values[i] = four.x;
    values[i + 1] = four.y;
    values[i + 2] = four.z;
    values[i + 3] = four.w;
  }
}
__device__ inline void store_values(__nv_bfloat16* to, const float (&v)[kCombined]) {
  *reinterpret_cast<uint4*>(to) = {pack(v[0], v[1]), pack(v[2], v[3]), pack(v[4], v[5]),
                                   pack(v[6], v[7])};
}
__device__ inline void store_values(float* to, const float (&v)[kCombined]) {
  *reinterpret_cast<float4*>(to) = {v[0], v[1], v[2], v[3]};
  *reinterpret_cast<float4*>(to + 4) = {v[4], v[5], v[6], v[7]};
}

// ---- The host side of the bulk copies.

struct Maps {
  CUtensorMap w13, w2;  // boxes of kHalf rows of 128 codes
  CUtensorMap h_slab;   // boxes of kSlab rows of 128 bytes
  CUtensorMap h, y;     // boxes of kUnit such rows; y only where it is bf16
};

inline cudaError_t make_maps(Maps* maps,
                             const Arrays& a,
                             const __nv_fp8_e4m3* w13,
                             const __nv_fp8_e4m3* w2,
                             const Sizes& sizes,
                             bool out_fp32) {
  const auto experts = static_cast<uint64_t>(sizes.num_experts);
  const auto hidden = static_cast<uint64_t>(sizes.hidden_size);
  const auto inner = static_cast<uint64_t>(sizes.intermediate_size);
  const auto bytes = [](const __nv_fp8_e4m3* codes) {
    return reinterpret_cast<const uint8_t*>(codes);
  };
  cudaError_t status = make_tensor_map(&maps->w13, bytes(w13), {hidden, 2 * inner, experts}, kHalf);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->w2, bytes(w2), {inner, hidden, experts}, kHalf);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->h_slab, bytes(a.h_codes), {inner, a.rows}, kSlab);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&maps->h, bytes(a.h_codes), {inner, a.rows}, kUnit);
  if (status != cudaSuccess) return status;
  if (out_fp32) {
    maps->y = maps->h;  // nobody uses it
    return cudaSuccess;
  }
  return make_tensor_map(&maps->y, static_cast<const __nv_bfloat16*>(a.y), {hidden, a.rows}, kUnit);
}

}  // namespace moe::DRILL_SIDE::m10
