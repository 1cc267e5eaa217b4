// m9_decode: the layer for a few tokens, in three kernels or four.
//
// The given headers have the workspace and the frame of route (m9_decode.routing.h), what a warp
// works with (m9_decode.pieces.h) and the frame of the products for T > 4 (m9_decode.products.h).
// Here: the two steps of route; for T <= 4 both products by multiply-adds, GEMM2 with the sum over
// experts; above the ring, rows, columns and mmas of a warp, and the sum over splits and slots; the
// launches.
//
// No warp wants what another one reads, so no weight is shared. What keeps the memory busy are
// bytes under way: at 4.8 TB/s and a latency of about 1 us, 36 KB on each of 132 multiprocessors.
//
// The contract is drills/m9_decode.h; the note is content/m9_decode.md.
#include <drills/m9_decode.h>

#include <drills/chunk.h>
#include <drills/dependent_launch.h>
#include <drills/launch.h>
#include <drills/m9_decode.pieces.h>
#include <drills/m9_decode.products.h>
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
__global__ void __launch_bounds__(kThreads, kGemv1Blocks<TOKENS>) gemv1_kernel(Problem p) {
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
__global__ void __launch_bounds__(kThreads, kGemv2Blocks<TOKENS>) gemv2_kernel(Problem p) {
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

}  // namespace

// ---- T > 4: mma.sync, 16 rows of W by eight tokens. lane = 4 * g + quad.

// ask() asks for one more stage, which goes where the stage before this one was, and closes a group
// of copies, also behind the end. kStages - 1 have been asked for before the first call.
template <class Ask>
__device__ __forceinline__ const unsigned char* next_stage(Ring& ring, const Ask& ask) {
  // The stage has arrived when this lane's copies have and those of the others; the one before may
  // be overwritten when all lanes have read it.
  // BEGIN m9.ring
  cp_async_wait<kStages - 2>();
  __syncwarp();
  ask();
  // END m9.ring
  return ring.next_used();
}

__device__ __forceinline__ Columns columns_of_split(int depth, int split, int splits) {
  Columns columns = {0, depth};
  // Each split has its share of the steps of kColumns columns, the last of which may be short. All
  // columns belong to one split.
  // BEGIN m9.split
  const int64_t steps = (depth + kColumns - 1) / kColumns;
  columns.begin = static_cast<int>(steps * split / splits) * kColumns;
  columns.end = min(depth, static_cast<int>(steps * (split + 1) / splits) * kColumns);
  // END m9.split
  return columns;
}

__device__ __forceinline__ RowPair rows_of_pair(const Problem& p, const Piece& piece, int row) {
  const int depth = p.s.hidden_size;
  const int inner = p.s.intermediate_size;
  RowPair rows = {p.w13, nullptr};
  // Rows 0 to 7 of the 16 are gate rows 8 * number and on, rows 8 to 15 the up rows of the same
  // columns of h, so that both sums of a column meet in one thread. This lane has row `row` of each
  // eight.
  // BEGIN m9.pair
  const int64_t gate_row =
      static_cast<int64_t>(piece.run.expert) * 2 * inner + piece.number * 8 + row;
  rows.upper = p.w13 + gate_row * depth;
  rows.lower = rows.upper + static_cast<int64_t>(inner) * depth;
  // STUB: rows.upper = p.w13 + static_cast<int64_t>(piece.run.expert) * 2 * inner * depth;
  // END m9.pair
  return rows;
}

__device__ __forceinline__ void multiply_part(float (&sums)[4],
                                              const uint4& upper,
                                              const uint4& lower,
                                              const uint4& v) {
  // A lane's fragment of a wants columns 2 * quad, + 1, + 8 and + 9 of 16; this lane has eight
  // columns side by side. Which column a place stands for does not matter, as long as a and b
  // agree: two mmas, of the first two words and of the last two.
  // BEGIN m9.fragments
  const uint32_t a_first[4] = {upper.x, lower.x, upper.y, lower.y};
  const uint32_t b_first[2] = {v.x, v.y};
  mma_m16n8k16(sums, a_first, b_first);
  const uint32_t a_last[4] = {upper.z, lower.z, upper.w, lower.w};
  const uint32_t b_last[2] = {v.z, v.w};
  mma_m16n8k16(sums, a_last, b_last);
  // END m9.fragments
}

__device__ __forceinline__ void store_y(
    const Problem& p, const Piece& piece, int64_t id, int g, const float (&sums)[4], int i) {
  const int hidden = p.s.hidden_size;
  // y is [splits, T*K, H], in fp32. sums[i] is row g of the piece, column number * kPieceRows + g
  // of y; sums[2 + i] is row g + 8: the last piece may have eight rows.
  // BEGIN m9.y
  const int64_t row = static_cast<int64_t>(piece.split) * p.s.num_tokens * p.s.top_k + id;
  const int column = piece.number * kPieceRows + g;
  p.a.y[row * hidden + column] = sums[i];
  if (column + 8 < hidden) p.a.y[row * hidden + column + 8] = sums[2 + i];
  // END m9.y
}

namespace {

constexpr int kCombineThreads = 128;
constexpr int kTermsAtOnce = 8;  // whose loads are under way together

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
  const int terms = p.s.top_k * p.splits;
  for (int first = 0; first < terms; first += kTermsAtOnce) {
    float4 y[kTermsAtOnce];
    float weights[kTermsAtOnce];
#pragma unroll
    for (int i = 0; i < kTermsAtOnce; ++i) {
      if (first + i >= terms) break;
      const int64_t id = token * p.s.top_k + (first + i) / p.splits;
      const int64_t row = (first + i) % p.splits * ids + id;
      y[i] = *reinterpret_cast<const float4*>(p.a.y + row * hidden + column);
      weights[i] = p.a.topk_weights[id];
    }
#pragma unroll
    for (int i = 0; i < kTermsAtOnce; ++i) {
      if (first + i >= terms) break;
      sum.x += weights[i] * y[i].x;
      sum.y += weights[i] * y[i].y;
      sum.z += weights[i] * y[i].z;
      sum.w += weights[i] * y[i].w;
    }
  }
  // END m9.combine
  __nv_bfloat162* to = reinterpret_cast<__nv_bfloat162*>(p.out + token * hidden + column);
  to[0] = __floats2bfloat162_rn(sum.x, sum.y);
  to[1] = __floats2bfloat162_rn(sum.z, sum.w);
}

// ---- Launches.

cudaError_t launch_gemv1(const Problem& p, cudaStream_t stream) {
  if (p.s.num_tokens == 1) {
    return launch_persistent(gemv1_kernel<1>, kGemv1Blocks<1>, 0, p, stream);
  }
  return launch_persistent(gemv1_kernel<kMaxGemvTokens>, kGemv1Blocks<kMaxGemvTokens>, 0, p,
                           stream);
}

cudaError_t launch_gemv2(const Problem& p, cudaStream_t stream) {
  auto* kernel = p.s.num_tokens == 1 ? gemv2_kernel<1> : gemv2_kernel<kMaxGemvTokens>;
  return launch(behind_kernel_in_front(kernel), kernel,
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
  cudaError_t status = launch_route(p.a, p.s, logits, renormalize, stream);
  if (status != cudaSuccess) return status;
  // Up to kMaxGemvTokens tokens: launch_gemv1 and launch_gemv2. Above: launch_pieces for GEMM1 and
  // for GEMM2, and launch_combine. The first error is returned.
  // BEGIN m9.launches
  if (num_tokens <= kMaxGemvTokens) {
    status = launch_gemv1(p, stream);
    return status != cudaSuccess ? status : launch_gemv2(p, stream);
  }
  status = launch_pieces<true>(p, stream);
  if (status == cudaSuccess) status = launch_pieces<false>(p, stream);
  return status != cudaSuccess ? status : launch_combine(p, stream);
  // STUB: return cudaSuccess;
  // END m9.launches
}

}  // namespace moe::DRILL_SIDE::m9
