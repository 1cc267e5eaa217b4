// m8_persistent: the whole layer as fast as a Hopper GPU allows, in one graph-safe call.
//
//   route     as in m1; block b also counts how many rows its tokens give to each expert
//   place     adds the counts up, cuts each expert's rows into tiles, gives each slot its row
//   GEMM1     h[row] = silu(x[token] * gate[expert]^T) * (x[token] * up[expert]^T)
//   GEMM2     y[row] = h[row] * w2[expert]^T
//   combine   out[token] = sum over slots of weight * y[row of the slot], in the order of slots
//
// Rows are sorted by expert as in m7, but an expert's rows are padded to a multiple of 16 and not
// to whole tiles; which rows a tile has stands in a table of runs. A tile of GEMM1 has at most 128
// rows; but 16 or 32 rows that an expert has more than whole tiles go to one or two of those, which
// are then long. Blocks of both GEMMs stay on their multiprocessor and take the next tile from a
// counter. In each one thread loads, in GEMM1 beside three warps that gather tokens, and two
// warpgroups multiply. Where experts have 192 rows or more on average, two blocks are a cluster and
// load for each other: in GEMM1 the rows of W of two token tiles, in GEMM2 the tokens of two column
// tiles. Each of the five kernels may start before the one in front has ended; GEMM2 takes an
// expert's tiles as soon as its rows of h are reported.
//
// Worked example: T = 4, K = 2, E = 3, the routing of m1_align.h. Experts get 3, 3 and 2 rows, so
// each has one unit of 16: rows 0, 16 and 32. sorted_row of the flat ids 0 .. 7 is 0 16 17 32 1 33
// 18 2: ids of an expert stay in ascending order, which makes the layer deterministic. One tile
// each, (tokens, first row) = (16, 0), (16, 16), (16, 32), at every 128 columns of h and of y.
//
// Cost: 6 * T*K * H * I FLOPs on real rows. Bytes, at least: 2 * (2 * T*H + 3 * E' * H * I), E'
// being the experts that somebody chose; h and y are written and read besides, 4 * T*K * (H + I)
// together, most of it through L2 where that is larger than they are.
//
// Files: the contract here; given are drills/m8_persistent.routing.h (the workspace, m1's route),
// drills/m8_persistent.place.h (the frame of place), drills/m8_persistent.tiles.h (what a block of
// the GEMMs holds, m7's SiLU, tensor maps) and drills/m8_persistent.loads.h (what warps that load
// say to others, the gather); yours is mine/m8_persistent.cu: the steps of place, both GEMMs,
// combine, the launches.
//
// Sources: m7's; dependent launches from the CUDA programming guide; stable order inside an expert
// and the table of runs are ours.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/capability.h>
#include <drills/m1_align.h>

namespace moe::DRILL_SIDE::m8 {

// The bytes of scratch memory that moe_layer wants. Called on the host.
size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

// The layer of m3's contract: out[t] = sum over the slots of token t of weight * expert(x[t]).
//   - fp32 sums; rounded to bf16: h, y, out. SiLU to 1e-6 of its value, or to 5e-8, as in m7.
//   - Same input, same bytes, in every run and on every number of multiprocessors.
//   - The workspace is dirty before and after; counters are reset inside the call, so a captured
//     graph can be replayed with other routing.
//   - E <= 1024, K <= 32, H % 8 == 0, I % 8 == 0; x is smaller than 4 GiB. T = 0 launches nothing.
// Refused unless the device's capability is 9.0.
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
  if (intermediate_size < 1 || intermediate_size % 8 != 0) {
    return "I must be a positive multiple of 8";
  }
  if (intermediate_size > INT_MAX / 2) return "2 * I must fit in int";
  if (static_cast<int64_t>(num_tokens) * hidden_size > int64_t{UINT32_MAX} / 2) {
    return "x must be smaller than 4 GiB";
  }
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, 128)) return rule;
  const uintptr_t addresses = reinterpret_cast<uintptr_t>(out) | reinterpret_cast<uintptr_t>(x) |
                              reinterpret_cast<uintptr_t>(w13) | reinterpret_cast<uintptr_t>(w2);
  if (addresses % 16 != 0) return "out, x, w13 and w2 must be 16-byte aligned";
  if (workspace_bytes <
      moe_layer_workspace_bytes(num_tokens, num_experts, top_k, hidden_size, intermediate_size)) {
    return "workspace_bytes must be at least moe_layer_workspace_bytes(...)";
  }
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0) {
    return "workspace must be 256-byte aligned";
  }
  return refuse_unless_capability_9_0();
}

}  // namespace moe::DRILL_SIDE::m8
