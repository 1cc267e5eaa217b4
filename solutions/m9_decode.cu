// m9_decode: the layer for a few tokens, in three kernels or four.
//
// The given headers have the workspace and the frame of route (m9_decode.routing.h) and what a warp
// works with (m9_decode.pieces.h). Here: the two steps of route; for T <= 4 both products by
// multiply-adds, GEMM2 with the sum over experts; above both products by mma.sync and the sum over
// splits and slots; the launches.
//
// No weight goes through shared memory: nobody else wants it. What keeps the memory busy are loads
// under way, 4 KB a warp and 16 warps a multiprocessor. At 4.8 TB/s and a latency of about 1 us,
// 36 KB must be under way on each of 132.
//
// The contract is drills/m9_decode.h; the note is content/m9_decode.md.
#include <drills/m9_decode.h>

#include <drills/chunk.h>
#include <drills/dependent_launch.h>
#include <drills/launch.h>
#include <drills/m9_decode.pieces.h>
#include <drills/m9_decode.routing.h>
#include <drills/persistent.h>
#include <drills/ptx.h>

namespace moe::DRILL_SIDE::m9 {

// ---- Route.

__device__ void note_choice(RouteShared& shared, int token, int expert) {
  // Tokens of different warps may choose one expert at the same time. Whatever their order, the
  // mask must come out the same.
  // BEGIN m9.mask
  atomicOr(&shared.chosen_by[expert], TokenMask{1} << token);
  // END m9.mask
}

__device__ void place_id(const RouteShared& shared, const Arrays& a, int flat_id, int top_k) {
  // flat_ids of an expert start at first[expert] and are in ascending order of tokens. How many
  // tokens before this one chose the expert, its mask says.
  // BEGIN m9.place
  const int expert = shared.ids[flat_id];
  const TokenMask before = (TokenMask{1} << (flat_id / top_k)) - 1;
  const int rank = __popcll(shared.chosen_by[expert] & before);
  a.flat_ids[shared.first[expert] + rank] = flat_id;
  // END m9.place
}

namespace {

// ---- T <= 4: multiply-adds. A warp streams four rows of W, 256 columns a step, 8 a lane.

// w[r]: eight columns of row r of W; inputs[t]: where the same columns of token t start, null if
// the token isn't in the run. Adds scales[t] * (their product) to sums[r][t].
template <int TOKENS>
__device__ __forceinline__ void add_products(float (&sums)[kRows][TOKENS],
                                             const uint4 (&w)[kRows],
                                             const __nv_bfloat16* const (&inputs)[TOKENS],
                                             const float (&scales)[TOKENS]) {
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) {
    if (inputs[t] == nullptr) continue;
    // load_chunk turns eight columns into fp32. A word of w holds two: the lower half is the first.
    // BEGIN m9.dot
    float values[kChunk];
    load_chunk(values, inputs[t]);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const uint32_t words[kChunk / 2] = {w[r].x, w[r].y, w[r].z, w[r].w};
      float product = 0.0f;
#pragma unroll
      for (int c = 0; c < kChunk / 2; ++c) {
        product += __uint_as_float(words[c] << 16) * values[2 * c];
        product += __uint_as_float(words[c] & 0xffff0000u) * values[2 * c + 1];
      }
      sums[r][t] += scales[t] * product;
    }
    // END m9.dot
  }
}

// Columns i and i + 1 of h, for the tokens of the run. Rows 0 and 1 of sums are gate, 2 and 3 up.
template <int TOKENS>
__device__ __forceinline__ void store_h(const Problem& p,
                                        const Run& run,
                                        int i,
                                        const float (&sums)[kRows][TOKENS]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
#pragma unroll
  for (int t = 0; t < TOKENS; ++t) {
    if ((run.tokens >> t & 1) == 0) continue;
    // Each lane has the sums of its columns; warp_sum adds up over the lanes, and gives all of them
    // the total. The token's row of h is flat_id_of(p.a, run, t).
    // BEGIN m9.h
    float total[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) total[r] = warp_sum(sums[r][t]);
    if (lane == 0) {
      const int64_t flat_id = flat_id_of(p.a, run, t);
      __nv_bfloat16* h = p.a.h + flat_id * p.s.intermediate_size + i;
      *reinterpret_cast<__nv_bfloat162*>(h) =
          __floats2bfloat162_rn(silu_and_mul(total[0], total[2]), silu_and_mul(total[1], total[3]));
    }
    // END m9.h
  }
}

// A warp takes two columns of h at a time, of one expert: rows i and i + 1 of gate and of up.
template <int TOKENS>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) gemv1_kernel(Problem p) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp =
      static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarpSize;
  const int hidden = p.s.hidden_size;
  const int inner = p.s.intermediate_size;
  wait_for_kernel_in_front();
  let_next_kernel_start();
  const int num_items = *p.a.num_runs * (inner / 2);
  for (int item = warp; item < num_items; item += static_cast<int>(gridDim.x) * kWarps) {
    const Run run = p.a.runs[item / (inner / 2)];
    const int i = item % (inner / 2) * 2;
    const __nv_bfloat16* gate = p.w13 + (static_cast<int64_t>(run.expert) * 2 * inner + i) * hidden;
    const __nv_bfloat16* up = gate + static_cast<int64_t>(inner) * hidden;
    const __nv_bfloat16* rows[kRows] = {gate, gate + hidden, up, up + hidden};
    float sums[kRows][TOKENS] = {};
    float scales[TOKENS];
#pragma unroll
    for (float& scale : scales) scale = 1.0f;
    const auto multiply = [&](const uint4(&w)[kRows], int k) {
      const __nv_bfloat16* inputs[TOKENS];
#pragma unroll
      for (int t = 0; t < TOKENS; ++t) {
        inputs[t] =
            (run.tokens >> t & 1) != 0 ? p.x + static_cast<int64_t>(t) * hidden + k : nullptr;
      }
      add_products(sums, w, inputs, scales);
    };
    // All of the rows' `hidden` columns, kStepsAtOnce steps at a time: first the loads of them all,
    // load_weights(rows[r] + k), then multiply(w, k) of each. This lane's columns of step s are
    // s * kStep + lane * kChunk and the next seven; behind the end there is nothing to load.
    // BEGIN m9.stream
    for (int first = lane * kChunk; first < hidden; first += kStep * kStepsAtOnce) {
      uint4 w[kStepsAtOnce][kRows];
#pragma unroll
      for (int b = 0; b < kStepsAtOnce; ++b) {
        if (first + b * kStep >= hidden) break;
#pragma unroll
        for (int r = 0; r < kRows; ++r) w[b][r] = load_weights(rows[r] + first + b * kStep);
      }
#pragma unroll
      for (int b = 0; b < kStepsAtOnce; ++b) {
        if (first + b * kStep < hidden) multiply(w[b], first + b * kStep);
      }
    }
    // END m9.stream

    store_h(p, run, i, sums);
  }
}

// A block takes four columns of out, of all tokens. Its warps share the steps of all runs.
template <int TOKENS>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) gemv2_kernel(Problem p) {
  __shared__ float parts[kWarps][kRows][TOKENS];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize;
  const int warp = thread / kWarpSize;
  const int hidden = p.s.hidden_size;
  const int inner = p.s.intermediate_size;
  const int column = static_cast<int>(blockIdx.x) * kRows;
  const int steps_of_run = (inner + kStep - 1) / kStep;
  float sums[kRows][TOKENS] = {};

  // Step number `step` of all runs' steps, one run behind the other.
  const auto run_of = [&](int step) { return p.a.runs[step / steps_of_run]; };
  const auto k_of = [&](int step) { return step % steps_of_run * kStep + lane * kChunk; };
  const auto load = [&](uint4(&w)[kRows], int step) {
    const int k = k_of(step);
    if (k >= inner) return;
    const int64_t row = static_cast<int64_t>(run_of(step).expert) * hidden + column;
#pragma unroll
    for (int r = 0; r < kRows; ++r) w[r] = load_weights(p.w2 + (row + r) * inner + k);
  };
  const auto multiply = [&](const uint4(&w)[kRows], int step) {
    const int k = k_of(step);
    if (k >= inner) return;
    const Run run = run_of(step);
    const __nv_bfloat16* inputs[TOKENS] = {};
    float scales[TOKENS] = {};
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
      if ((run.tokens >> t & 1) == 0) continue;
      const int64_t flat_id = flat_id_of(p.a, run, t);
      inputs[t] = p.a.h + flat_id * inner + k;
      scales[t] = p.a.topk_weights[flat_id];
    }
    add_products(sums, w, inputs, scales);
  };

  // This warp's steps are warp, warp + kWarps, ..., kStepsAtOnce of them at a time: the loads, then
  // the products. Of the kernels in front, GEMM1 wrote h; weights and runs were there before it
  // began. So wait_for_kernel_in_front() behind the first loads, before the first product.
  // BEGIN m9.share
  const int num_steps = *p.a.num_runs * steps_of_run;
  for (int first = warp; first < num_steps; first += kWarps * kStepsAtOnce) {
    uint4 w[kStepsAtOnce][kRows];
#pragma unroll
    for (int b = 0; b < kStepsAtOnce; ++b) {
      if (first + b * kWarps < num_steps) load(w[b], first + b * kWarps);
    }
    if (first == warp) wait_for_kernel_in_front();
#pragma unroll
    for (int b = 0; b < kStepsAtOnce; ++b) {
      if (first + b * kWarps < num_steps) multiply(w[b], first + b * kWarps);
    }
  }
  // END m9.share

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int t = 0; t < TOKENS; ++t) {
      const float part = warp_sum(sums[r][t]);
      if (lane == 0) parts[warp][r][t] = part;
    }
  }
  __syncthreads();
  // One thread for each row and token adds up the warps' parts, always in the same order.
  if (thread < kRows * TOKENS && thread % TOKENS < p.s.num_tokens) {
    const int r = thread / TOKENS;
    const int token = thread % TOKENS;
    // BEGIN m9.order
    float sum = 0.0f;
    for (int part = 0; part < kWarps; ++part) sum += parts[part][r][token];
    p.out[static_cast<int64_t>(token) * hidden + column + r] = __float2bfloat16(sum);
    // END m9.order
  }
}

// ---- T > 4: mma.sync, 16 rows of W by eight tokens. lane = 4 * g + quad.

// Adds rows upper and lower of W (this lane's: g and g + 8 of the 16; lower null: no such row)
// times row rows[j] of tokens (token g of tile j; -1: none), which are `depth` long, to sums, over
// columns begin .. end - 1.
template <int TILES>
__device__ __forceinline__ void multiply_piece(float (&sums)[TILES][4],
                                               const __nv_bfloat16* upper,
                                               const __nv_bfloat16* lower,
                                               const __nv_bfloat16* tokens,
                                               const int (&rows)[TILES],
                                               int depth,
                                               int begin,
                                               int end) {
  const int quad = static_cast<int>(threadIdx.x) % 4;
  const uint4 zeros = make_uint4(0, 0, 0, 0);
  for (int first = begin; first < end; first += kColumns * kColumnsAtOnce) {
    uint4 w[kColumnsAtOnce][2];
#pragma unroll
    for (int b = 0; b < kColumnsAtOnce; ++b) {
      const int k = first + b * kColumns + quad * kChunk;
      w[b][0] = k < end ? load_weights(upper + k) : zeros;
      w[b][1] = k < end && lower != nullptr ? load_weights(lower + k) : zeros;
    }
#pragma unroll
    for (int b = 0; b < kColumnsAtOnce; ++b) {
      if (first + b * kColumns >= end) break;
      const int k = first + b * kColumns + quad * kChunk;
#pragma unroll
      for (int j = 0; j < TILES; ++j) {
        uint4 v = zeros;
        if (k < end && rows[j] >= 0) {
          v = *reinterpret_cast<const uint4*>(tokens + static_cast<int64_t>(rows[j]) * depth + k);
        }
        // A lane's fragment of a wants columns 2 * quad, + 1, + 8 and + 9 of 16; this lane has
        // eight columns side by side. Which column a place stands for does not matter, as long as a
        // and b agree: two mmas, of the first two words and of the last two.
        // BEGIN m9.fragments
        const uint32_t a_first[4] = {w[b][0].x, w[b][1].x, w[b][0].y, w[b][1].y};
        const uint32_t b_first[2] = {v.x, v.y};
        mma_m16n8k16(sums[j], a_first, b_first);
        const uint32_t a_last[4] = {w[b][0].z, w[b][1].z, w[b][0].w, w[b][1].w};
        const uint32_t b_last[2] = {v.z, v.w};
        mma_m16n8k16(sums[j], a_last, b_last);
        // END m9.fragments
      }
    }
  }
}

// sums[j][i] is row g of the piece and token 2 * quad + i of tile j, sums[j][2 + i] row g + 8.
template <bool GEMM1, int TILES>
__device__ __forceinline__ void store_piece(
    const Problem& p, const Run& run, int piece, int split, const float (&sums)[TILES][4]) {
  const int g = static_cast<int>(threadIdx.x) % kWarpSize / 4;
  const int quad = static_cast<int>(threadIdx.x) % 4;
  const int hidden = p.s.hidden_size;
#pragma unroll
  for (int j = 0; j < TILES; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t id = id_at(p.a, run, j * kTile + quad * 2 + i);
      if (id < 0) continue;
      if (GEMM1) {  // gate is row g, up row g + 8
        const float h = silu_and_mul(sums[j][i], sums[j][2 + i]);
        p.a.h[id * p.s.intermediate_size + piece * 8 + g] = __float2bfloat16(h);
      } else {
        // y is [splits, T*K, H], in fp32. Row g of the piece is column piece * kPieceRows + g; the
        // last piece may have eight rows.
        // BEGIN m9.y
        const int64_t row = static_cast<int64_t>(split) * p.s.num_tokens * p.s.top_k + id;
        const int column = piece * kPieceRows + g;
        p.a.y[row * hidden + column] = sums[j][i];
        if (column + 8 < hidden) p.a.y[row * hidden + column + 8] = sums[j][2 + i];
        // END m9.y
      }
    }
  }
}

// One piece: 16 rows of W by all tokens of the run. GEMM1: the gate and up rows of eight columns of
// h; GEMM2: 16 columns of y, over the columns of one split.
template <bool GEMM1, int TILES>
__device__ __forceinline__ void compute_piece(const Problem& p,
                                              const Run& run,
                                              int piece,
                                              int split) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int g = lane / 4;
  const int hidden = p.s.hidden_size;
  const int inner = p.s.intermediate_size;
  const int depth = GEMM1 ? hidden : inner;
  int rows[TILES];  // of x or h, for this lane's token of each tile
#pragma unroll
  for (int j = 0; j < TILES; ++j) {
    const int id = id_at(p.a, run, j * kTile + g);
    rows[j] = GEMM1 && id >= 0 ? id / p.s.top_k : id;
  }
  const __nv_bfloat16* upper = nullptr;
  const __nv_bfloat16* lower = nullptr;
  int begin = 0;
  int end = depth;
  if (GEMM1) {
    // Rows 0 to 7 of the 16 are gate rows 8 * piece and on, rows 8 to 15 the up rows of the same
    // columns of h: this lane has g and g + 8, so that both sums of a column meet in one thread.
    // BEGIN m9.pair
    const int64_t gate_row = static_cast<int64_t>(run.expert) * 2 * inner + piece * 8 + g;
    upper = p.w13 + gate_row * depth;
    lower = upper + static_cast<int64_t>(inner) * depth;
    // STUB: upper = p.w13 + static_cast<int64_t>(run.expert) * 2 * inner * depth;
    // END m9.pair
  } else {
    const int64_t row = piece * kPieceRows + g;
    upper = p.w2 + (static_cast<int64_t>(run.expert) * hidden + row) * depth;
    if (row + 8 < hidden) lower = upper + static_cast<int64_t>(8) * depth;
    // Split `split` of p.splits has its share of the steps of kColumns columns, the last of which
    // may be short. All columns belong to one split.
    // BEGIN m9.split
    const int64_t steps = (depth + kColumns - 1) / kColumns;
    begin = static_cast<int>(steps * split / p.splits) * kColumns;
    end = min(depth, static_cast<int>(steps * (split + 1) / p.splits) * kColumns);
    // END m9.split
  }
  float sums[TILES][4] = {};
  multiply_piece(sums, upper, lower, GEMM1 ? p.x : p.a.h, rows, depth, begin, end);
  store_piece<GEMM1>(p, run, piece, split, sums);
}

template <bool GEMM1>
__global__ void __launch_bounds__(kThreads, kBlocksPerMultiprocessor) pieces_kernel(Problem p) {
  const int warp =
      static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x) / kWarpSize;
  wait_for_kernel_in_front();
  let_next_kernel_start();
  const int pieces =
      GEMM1 ? p.s.intermediate_size / 8 : (p.s.hidden_size + kPieceRows - 1) / kPieceRows;
  const int pieces_of_run = pieces * (GEMM1 ? 1 : p.splits);
  const int num_items = *p.a.num_runs * pieces_of_run;
  for (int item = warp; item < num_items; item += static_cast<int>(gridDim.x) * kWarps) {
    const Run run = p.a.runs[item / pieces_of_run];
    const int in_run = item % pieces_of_run;
    with_tiles(run.count, [&](auto tiles) {
      compute_piece<GEMM1, decltype(tiles)::value>(p, run, in_run % pieces, in_run / pieces);
    });
  }
}

constexpr int kCombineThreads = 128;

// A thread has four columns of one token.
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(Problem p) {
  wait_for_kernel_in_front();
  const int64_t token = blockIdx.x;
  const int hidden = p.s.hidden_size;
  const int64_t ids = static_cast<int64_t>(p.s.num_tokens) * p.s.top_k;
  const int column =
      (static_cast<int>(blockIdx.y) * kCombineThreads + static_cast<int>(threadIdx.x)) * 4;
  if (column >= hidden) return;
  float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  // Slots in ascending order, and in a slot its splits: y of a split and a flat id is row
  // split * ids + flat_id. The weight of a slot is topk_weights[flat_id].
  // BEGIN m9.combine
  for (int64_t id = token * p.s.top_k; id < (token + 1) * p.s.top_k; ++id) {
    const float weight = p.a.topk_weights[id];
    for (int split = 0; split < p.splits; ++split) {
      const float* from = p.a.y + (split * ids + id) * hidden + column;
      const float4 y = *reinterpret_cast<const float4*>(from);
      sum.x += weight * y.x;
      sum.y += weight * y.y;
      sum.z += weight * y.z;
      sum.w += weight * y.w;
    }
  }
  // END m9.combine
  __nv_bfloat162* to = reinterpret_cast<__nv_bfloat162*>(p.out + token * hidden + column);
  to[0] = __floats2bfloat162_rn(sum.x, sum.y);
  to[1] = __floats2bfloat162_rn(sum.z, sum.w);
}

// ---- Launches.

cudaError_t launch_route(const Problem& p,
                         const float* logits,
                         bool renormalize,
                         cudaStream_t stream) {
  auto* kernel = route_kernel<32>;
  if (p.s.num_experts <= 256) kernel = route_kernel<8>;
  if (p.s.num_experts <= 128) kernel = route_kernel<4>;
  if (p.s.num_experts <= 64) kernel = route_kernel<2>;
  if (p.s.num_experts <= 32) kernel = route_kernel<1>;
  return launch(kernel, dim3(1), dim3(kRouteThreads), 0, stream, p.a, logits, p.s, renormalize);
}

// Blocks that stay and take one piece of work after another.
cudaError_t launch_persistent(void (*kernel)(Problem), const Problem& p, cudaStream_t stream) {
  int multiprocessors = 0;
  const cudaError_t status = count_multiprocessors(&multiprocessors);
  if (status != cudaSuccess) return status;
  return launch(behind_kernel_in_front(kernel), kernel,
                dim3(static_cast<unsigned>(multiprocessors * kBlocksPerMultiprocessor)),
                dim3(kThreads), 0, stream, p);
}

template <int TOKENS>
cudaError_t launch_gemv2(const Problem& p, cudaStream_t stream) {
  return launch(behind_kernel_in_front(gemv2_kernel<TOKENS>), gemv2_kernel<TOKENS>,
                dim3(static_cast<unsigned>(p.s.hidden_size / kRows)), dim3(kThreads), 0, stream, p);
}

cudaError_t launch_combine(const Problem& p, cudaStream_t stream) {
  constexpr int kColumnsOfBlock = 4 * kCombineThreads;
  const int blocks = (p.s.hidden_size + kColumnsOfBlock - 1) / kColumnsOfBlock;
  return launch(behind_kernel_in_front(combine_kernel), combine_kernel,
                dim3(static_cast<unsigned>(p.s.num_tokens), static_cast<unsigned>(blocks)),
                dim3(kCombineThreads), 0, stream, p);
}

}  // namespace

size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (refuse_sizes(num_tokens, num_experts, top_k) != nullptr) return 0;
  return arrays_of(nullptr, {num_tokens, num_experts, top_k, hidden_size, intermediate_size}).bytes;
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
  const Sizes sizes = {num_tokens, num_experts, top_k, hidden_size, intermediate_size};
  const Problem p = {out, x, w13, w2, arrays_of(workspace, sizes), sizes, splits_of(sizes)};
  cudaError_t status = launch_route(p, logits, renormalize, stream);
  if (status != cudaSuccess) return status;
  // Up to kMaxGemvTokens tokens: gemv1_kernel (launch_persistent) and launch_gemv2, both for one
  // token or for four. Above: pieces_kernel<true>, pieces_kernel<false> and launch_combine. The
  // first error is returned.
  // BEGIN m9.launches
  if (num_tokens <= kMaxGemvTokens) {
    status = launch_persistent(num_tokens == 1 ? gemv1_kernel<1> : gemv1_kernel<kMaxGemvTokens>, p,
                               stream);
    if (status != cudaSuccess) return status;
    return num_tokens == 1 ? launch_gemv2<1>(p, stream) : launch_gemv2<kMaxGemvTokens>(p, stream);
  }
  status = launch_persistent(pieces_kernel<true>, p, stream);
  if (status != cudaSuccess) return status;
  status = launch_persistent(pieces_kernel<false>, p, stream);
  if (status != cudaSuccess) return status;
  return launch_combine(p, stream);
  // STUB: return cudaSuccess;
  // END m9.launches
}

}  // namespace moe::DRILL_SIDE::m9
