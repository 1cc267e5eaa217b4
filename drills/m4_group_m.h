// m4_group_m: the same grouped GEMM on fast tiles, visited in an order that the L2 cache likes.
//
// GEMM tiles form a grid: num_pid_m rows of tiles (BLOCK_M table rows each) by num_pid_n columns of
// tiles (BLOCK_N columns each). A program (thread block) reads one panel of A, shared by its row of
// the grid, and one panel of W, shared by its column (and expert). Programs start in the order of
// their number pid, so the order decides what the cache still holds: groups of GROUP_M rows are
// walked column by column, so that GROUP_M programs in a row use the same panel of W, and the
// panels of A of the group stay for the whole walk.
//
// Worked example: num_pid_m = 5, num_pid_n = 3, group_m = 2. The grid shows pid:
//             n=0  n=1  n=2
//       m=0    0    2    4      first group: rows 0 and 1
//       m=1    1    3    5
//       m=2    6    8   10      second group
//       m=3    7    9   11
//       m=4   12   13   14      last group: only one row is left
// A cache that holds 4 panels loads 5 of A and 8 of W in this order, 5 and 11 row by row, 15 and 3
// column by column.
//
// Cost: FLOPs as in m2. Panels of A are num_pid_m * BLOCK_M * D * 2 bytes, of W num_pid_n * BLOCK_N
// * D * 2; the best order reads each once, GROUP_M order reads W ceil(num_pid_m / group_m) times at
// most.
//
// Sources: GROUP_SIZE_M in Triton's matrix multiplication tutorial and in vLLM's fused_moe_kernel
// (vllm/model_executor/layers/fused_moe); get_default_config there for the rule of few tokens.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/m2_grouped_gemm.h>
#include <drills/m4_group_m.tiles.h>

namespace moe {

// A place in the grid of tiles.
struct TileCoordinates {
  int m;  // pid_m, which block of rows
  int n;  // pid_n, which range of columns
};

inline bool is_compiled_tile(int block_m, const GemmTile& tile) {
  for (const TileShape& shape : kTileShapes) {
    if (shape.block_m == block_m && shape.block_n == tile.block_n &&
        shape.block_k == tile.block_k) {
      return true;
    }
  }
  return false;
}

// The arguments of grouped_gemm: too many by now for a list.
struct GroupedGemm {
  __nv_bfloat16* out;               // [T*K, N]
  const __nv_bfloat16* a;           // [T, D] or [T*K, D], see rows
  const __nv_bfloat16* w;           // [E, N, D]; with swiglu [E, 2N, D]: gate rows, then up rows
  const float* topk_weights;        // [T*K]: the fp32 sum times this, then one rounding; or null
  const int32_t* sorted_token_ids;  // [capacity]
  const int32_t* expert_ids;        // [capacity / block_m]
  const int32_t* num_tokens_post_padded;  // [1]
  TileCoordinates* trace;  // [num_programs]: each program that has a tile notes it; or null
  int num_tokens;
  int top_k;
  int num_experts;
  int n;      // N, columns of out
  int depth;  // D, the reduction
  int block_m;
  GemmTile tile;
  Rows rows;
  bool swiglu;  // out = silu(a * gate^T) * (a * up^T), weights not used
};

// Columns of out in one tile: with SwiGLU half of a tile's columns are gate, half are up.
__host__ __device__ constexpr int columns_of_tile(int block_n, bool swiglu) {
  return swiglu ? block_n / 2 : block_n;
}

// Blocks of the grid: enough for the worst routing. Those without a tile leave at once.
inline int64_t num_programs(const GroupedGemm& gemm) {
  const size_t capacity =
      align_capacity(gemm.num_tokens, gemm.top_k, gemm.num_experts, gemm.block_m);
  const int columns = columns_of_tile(gemm.tile.block_n, gemm.swiglu);
  const int64_t num_pid_n = (static_cast<int64_t>(gemm.n) + columns - 1) / columns;
  return static_cast<int64_t>(capacity) / gemm.block_m * num_pid_n;
}

}  // namespace moe

// A namespace of its own: moe_layer and grouped_gemm of other stages can stand beside these.
namespace moe::DRILL_SIDE::m4 {

// The tile that program `pid` of num_pid_m * num_pid_n works on. Every tile belongs to exactly one
// pid; defined for every group_m >= 1, also where num_pid_m is not a multiple of it.
__host__ __device__ TileCoordinates tile_of(int pid, int num_pid_m, int num_pid_n, int group_m);

// Given: tiles[pid] = tile_of(pid, ...) for all pids, computed on the device.
cudaError_t list_tiles(TileCoordinates* tiles,  // [num_pid_m * num_pid_n]
                       int num_pid_m,
                       int num_pid_n,
                       int group_m,
                       cudaStream_t stream);

// The tile for a layer, from the tables in m4_group_m.tiles.h:
//   T <= E                                   kFewTokensTile
//   a line of kTunedTiles with this E, K, H, I and num_tokens <= T   the one with the most tokens
//   else                                     the last line of kDefaultTiles with rows_per_expert <=
//   T*K/E
Tile pick_tile(int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

// m2's grouped GEMM, with two options for the epilogue: see GroupedGemm. One grid dimension of
// num_programs(gemm) blocks. num_pid_m = num_tokens_post_padded[0] / block_m is read on the device;
// pid >= num_pid_m * num_pid_n leaves; the others compute tile_of(pid, ...). An expert outside [0,
// E) means nothing to do, rows of out without a routed flat id stay untouched.
cudaError_t grouped_gemm(const GroupedGemm& gemm, cudaStream_t stream);

// Bytes of scratch memory that moe_layer wants.
size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

// The whole layer: route, align, GEMM1 with SwiGLU in its epilogue, GEMM2 with weights, combine.
//   h[flat_id] = silu(x[token] * gate[expert]^T) * (x[token] * up[expert]^T), rounded once to bf16
//   out[token] = sum over slots of topk_weights * h[flat_id] * w2[expert]^T
// Nothing is kept between calls; the workspace is dirty before and after.
cudaError_t moe_layer(__nv_bfloat16* out,        // [T, H]
                      const __nv_bfloat16* x,    // [T, H]
                      const float* logits,       // [T, E]
                      const __nv_bfloat16* w13,  // [E, 2I, H], gate rows, then up rows
                      const __nv_bfloat16* w2,   // [E, H, I]
                      int num_tokens,
                      int num_experts,
                      int top_k,
                      int hidden_size,
                      int intermediate_size,
                      bool renormalize,
                      void* workspace,
                      size_t workspace_bytes,
                      cudaStream_t stream);

// Given: nullptr, or the rule that the arguments break.
inline const char* refuse_list_tiles(const TileCoordinates* /*tiles*/,
                                     int num_pid_m,
                                     int num_pid_n,
                                     int group_m,
                                     cudaStream_t /*stream*/) {
  if (num_pid_m < 1 || num_pid_n < 1) return "num_pid_m and num_pid_n must be at least 1";
  if (static_cast<int64_t>(num_pid_m) * num_pid_n > INT_MAX) {
    return "num_pid_m * num_pid_n must fit in int";
  }
  if (group_m < 1) return "group_m must be at least 1";
  return nullptr;
}

inline const char* refuse_grouped_gemm(const GroupedGemm& gemm, cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(gemm.num_tokens, gemm.num_experts, gemm.top_k)) return rule;
  if (gemm.n < 1 || gemm.n % 8 != 0) return "N must be a positive multiple of 8";
  if (gemm.depth < 1 || gemm.depth % 8 != 0) return "D must be a positive multiple of 8";
  if (gemm.swiglu && gemm.n > INT_MAX / 2) return "2 * N must fit in int";
  if (!is_compiled_tile(gemm.block_m, gemm.tile)) {
    return "block_m, block_n, block_k must be a line of kTileShapes";
  }
  if (gemm.tile.group_m < 1) return "group_m must be at least 1";
  if (const char* rule =
          refuse_blocks(gemm.num_tokens, gemm.top_k, gemm.num_experts, gemm.block_m)) {
    return rule;
  }
  if (num_programs(gemm) > INT_MAX) return "the number of programs must fit in int";
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(gemm.out) |
                              reinterpret_cast<uintptr_t>(gemm.a) |
                              reinterpret_cast<uintptr_t>(gemm.w);
  if (addresses % 16 != 0) return "out, a and w must be 16-byte aligned";
  return nullptr;
}

inline const char* refuse_moe_layer(const __nv_bfloat16* out,
                                    const __nv_bfloat16* x,
                                    const float* /*logits*/,
                                    const __nv_bfloat16* w13,
                                    const __nv_bfloat16* w2,
                                    int num_tokens,
                                    int num_experts,
                                    int top_k,
                                    int hidden_size,
                                    int intermediate_size,
                                    bool /*renormalize*/,
                                    const void* workspace,
                                    size_t workspace_bytes,
                                    cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(num_tokens, num_experts, top_k)) return rule;
  if (num_experts > kMaxExperts) return "num_experts must not exceed 1024";
  if (top_k > kMaxTopK) return "top_k must not exceed 32";
  if (hidden_size < 1 || hidden_size % 8 != 0) return "H must be a positive multiple of 8";
  if (intermediate_size < 1 || intermediate_size % 8 != 0)
    return "I must be a positive multiple of 8";
  if (intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  const Tile tile = pick_tile(num_tokens, num_experts, top_k, hidden_size, intermediate_size);
  if (!is_compiled_tile(tile.block_m, tile.gemm1) || !is_compiled_tile(tile.block_m, tile.gemm2)) {
    return "pick_tile must give lines of kTileShapes";
  }
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, tile.block_m)) return rule;
  // At least 16 columns of out to a tile; both GEMMs have no more than this.
  const int64_t columns = hidden_size > intermediate_size ? hidden_size : intermediate_size;
  const size_t capacity = align_capacity(num_tokens, top_k, num_experts, tile.block_m);
  if (static_cast<int64_t>(capacity) / tile.block_m * (columns / 16 + 1) > INT_MAX) {
    return "capacity / block_m * (max(H, I) / 16 + 1) must fit in int";
  }
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(x) |
                              reinterpret_cast<uintptr_t>(w13) | reinterpret_cast<uintptr_t>(w2);
  if (addresses % 16 != 0) return "out, x, w13 and w2 must be 16-byte aligned";
  if (workspace_bytes <
      moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size, intermediate_size)) {
    return "workspace_bytes must be at least moe_layer_workspace_bytes(...)";
  }
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
    return "workspace must be 256-byte aligned";
  return nullptr;
}

}  // namespace moe::DRILL_SIDE::m4
