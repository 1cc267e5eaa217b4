// Operations of m4_group_m.
//   0 grouped_gemm   integers T K E N D block_m block_n block_k group_m rows(0 tokens, 1 slots)
//   swiglu;
//                    buffers out trace a w topk_weights sorted_token_ids expert_ids
//                    num_tokens_post_padded
//   1 list_tiles     of all grids min_m..max_m x min_n..max_n, one behind the other:
//                    integers min_m max_m min_n max_n group_m; buffers tiles
//   100 moe_layer    layer_operation.h
// and values:
//   2 tile_of on the host   integers pid num_pid_m num_pid_n group_m; m * 2^32 + n
//   3 pick_tile             integers T E K H I field; field in the order of struct Tile
#include <drills/m4_group_m.h>

#include "layer_operation.h"
#include "stage_calls.h"

namespace moe::runner {
namespace {

namespace stage = DRILL_SIDE::m4;

int integer(const StageCall& call, int index) {
  return static_cast<int>(call.integers[index]);
}

GroupedGemm gemm_of(const StageCall& c) {
  GroupedGemm gemm = {};
  gemm.out = static_cast<__nv_bfloat16*>(c.buffers[0]);
  gemm.trace = static_cast<TileCoordinates*>(c.buffers[1]);
  gemm.a = static_cast<const __nv_bfloat16*>(c.buffers[2]);
  gemm.w = static_cast<const __nv_bfloat16*>(c.buffers[3]);
  gemm.topk_weights = static_cast<const float*>(c.buffers[4]);
  gemm.sorted_token_ids = static_cast<const int32_t*>(c.buffers[5]);
  gemm.expert_ids = static_cast<const int32_t*>(c.buffers[6]);
  gemm.num_tokens_post_padded = static_cast<const int32_t*>(c.buffers[7]);
  gemm.num_tokens = integer(c, 0);
  gemm.top_k = integer(c, 1);
  gemm.num_experts = integer(c, 2);
  gemm.n = integer(c, 3);
  gemm.depth = integer(c, 4);
  gemm.block_m = integer(c, 5);
  gemm.tile = {integer(c, 6), integer(c, 7), integer(c, 8)};
  gemm.rows = integer(c, 9) == 0 ? Rows::kTokens : Rows::kSlots;
  gemm.swiglu = integer(c, 10) != 0;
  return gemm;
}

// The grids one after another, until one fails.
template <class Result, class Function>
Result for_all_grids(const StageCall& c, Result good, Function function) {
  auto* tiles = static_cast<TileCoordinates*>(c.buffers[0]);
  for (int m = integer(c, 0); m <= integer(c, 1); ++m) {
    for (int n = integer(c, 2); n <= integer(c, 3); ++n) {
      const Result result = function(tiles, m, n, integer(c, 4), c.stream);
      if (result != good) return result;
      tiles += static_cast<int64_t>(m) * n;
    }
  }
  return good;
}

int64_t field_of(const Tile& tile, int field) {
  const int fields[] = {tile.block_m,       tile.gemm1.block_n, tile.gemm1.block_k,
                        tile.gemm1.group_m, tile.gemm2.block_n, tile.gemm2.block_k,
                        tile.gemm2.group_m};
  return fields[field];
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  switch (call.operation) {
    case 0:
      return stage::grouped_gemm(gemm_of(call), call.stream);
    case 1:
      return for_all_grids(call, cudaSuccess, stage::list_tiles);
    default:
      return call_layer(call, stage::moe_layer);
  }
}

const char* refusal_of_stage(const StageCall& call) {
  switch (call.operation) {
    case 0:
      return stage::refuse_grouped_gemm(gemm_of(call), call.stream);
    case 1:
      return for_all_grids<const char*>(call, nullptr, stage::refuse_list_tiles);
    default:
      return with_layer_arguments(call, 0, stage::refuse_moe_layer);
  }
}

int64_t value_of_stage(const StageCall& c) {
  if (c.operation == 2) {
    const TileCoordinates tile =
        stage::tile_of(integer(c, 0), integer(c, 1), integer(c, 2), integer(c, 3));
    return static_cast<int64_t>(tile.m) * (int64_t{1} << 32) + tile.n;
  }
  if (c.operation == 3) {
    return field_of(
        stage::pick_tile(integer(c, 0), integer(c, 1), integer(c, 2), integer(c, 3), integer(c, 4)),
        integer(c, 5));
  }
  return layer_workspace_bytes(c, stage::moe_layer_workspace_bytes);
}

}  // namespace moe::runner
