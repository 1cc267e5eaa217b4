// The C interface of m4: see moe_drills.h.
#include <drills/m4_group_m.h>

#include "call.h"

namespace solution = moe::solution;
using moe::library::answer;
using moe::library::are_rows;
using moe::library::are_sizes;
using moe::library::bf16;
using moe::library::kUnknownRows;
using moe::library::refused;
using moe::library::rows_of;
using moe::library::stream_of;

namespace {

static_assert(sizeof(moe_drills_tile_coordinates) == sizeof(moe::TileCoordinates));

moe::GroupedGemm gemm_of(const moe_drills_m4_gemm& from) {
  moe::GroupedGemm gemm = {};
  gemm.out = bf16(from.out);
  gemm.a = bf16(from.a);
  gemm.w = bf16(from.w);
  gemm.topk_weights = from.topk_weights;
  gemm.sorted_token_ids = from.sorted_token_ids;
  gemm.expert_ids = from.expert_ids;
  gemm.num_tokens_post_padded = from.num_tokens_post_padded;
  gemm.num_tokens = from.num_tokens;
  gemm.top_k = from.top_k;
  gemm.num_experts = from.num_experts;
  gemm.n = from.n;
  gemm.depth = from.depth;
  gemm.block_m = from.block_m;
  gemm.tile = {from.tile.block_n, from.tile.block_k, from.tile.group_m};
  gemm.rows = rows_of(from.rows);
  gemm.swiglu = from.swiglu != 0;
  return gemm;
}

moe_drills_gemm_tile gemm_tile_of(const moe::GemmTile& tile) {
  return {tile.block_n, tile.block_k, tile.group_m};
}

}  // namespace

moe_drills_tile_coordinates moe_drills_m4_tile_of(int pid,
                                                  int num_pid_m,
                                                  int num_pid_n,
                                                  int group_m) {
  if (num_pid_m < 1 || num_pid_n < 1 || group_m < 1) return {0, 0};
  const moe::TileCoordinates tile = solution::m4::tile_of(pid, num_pid_m, num_pid_n, group_m);
  return {tile.m, tile.n};
}

int moe_drills_m4_list_tiles(
    moe_drills_tile_coordinates* tiles, int num_pid_m, int num_pid_n, int group_m, void* stream) {
  return answer("m4_list_tiles", solution::m4::refuse_list_tiles, solution::m4::list_tiles,
                reinterpret_cast<moe::TileCoordinates*>(tiles), num_pid_m, num_pid_n, group_m,
                stream_of(stream));
}

moe_drills_tile moe_drills_m4_pick_tile(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (!are_sizes(num_tokens, num_experts, top_k)) return {};
  const moe::Tile tile =
      solution::m4::pick_tile(num_tokens, num_experts, top_k, hidden_size, intermediate_size);
  return {tile.block_m, gemm_tile_of(tile.gemm1), gemm_tile_of(tile.gemm2)};
}

int moe_drills_m4_grouped_gemm(const moe_drills_m4_gemm* gemm, void* stream) {
  if (gemm == nullptr) return refused("m4_grouped_gemm", "gemm must not be NULL");
  if (!are_rows(gemm->rows)) return refused("m4_grouped_gemm", kUnknownRows);
  return answer("m4_grouped_gemm", solution::m4::refuse_grouped_gemm, solution::m4::grouped_gemm,
                gemm_of(*gemm), stream_of(stream));
}

size_t moe_drills_m4_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (!are_sizes(num_tokens, num_experts, top_k)) return 0;
  return solution::m4::moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size,
                                                 intermediate_size);
}

int moe_drills_m4_moe_layer(moe_drills_bf16* out,
                            const moe_drills_bf16* x,
                            const float* logits,
                            const moe_drills_bf16* w13,
                            const moe_drills_bf16* w2,
                            int num_tokens,
                            int num_experts,
                            int top_k,
                            int hidden_size,
                            int intermediate_size,
                            int renormalize,
                            void* workspace,
                            size_t workspace_bytes,
                            void* stream) {
  return answer("m4_moe_layer", solution::m4::refuse_moe_layer, solution::m4::moe_layer, bf16(out),
                bf16(x), logits, bf16(w13), bf16(w2), num_tokens, num_experts, top_k, hidden_size,
                intermediate_size, renormalize != 0, workspace, workspace_bytes, stream_of(stream));
}
