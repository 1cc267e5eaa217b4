// m9_decode: the layer for a few tokens, in three kernels or four.
//
// The given headers have the workspace and the frame of route (m9_decode.routing.h) and what a warp
// works with (m9_decode.pieces.h). Here: the two steps of route; for T <= 4 both products by
// multiply-adds, GEMM2 with the sum over experts; above both products by mma.sync, fed through a
// ring of each warp, and the sum over splits and slots; the launches.
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
#include <drills/m9_decode.routing.h>
#include <drills/persistent.h>
#include <drills/ptx.h>

namespace moe::DRILL_SIDE::m9 {

// ---- Route.

__device__ void note_choice(RouteShared& shared, int token, int expert) {
  // Tokens of different warps may choose one expert at the same time. Whatever their order, the
  // mask must come out the same.
  // BEGIN m9.mask
  // about 1 line
  DRILL_TODO("m9.mask");
  // END m9.mask
}

__device__ void place_id(const RouteShared& shared, const Arrays& a, int flat_id, int top_k) {
  // flat_ids of an expert start at first[expert] and are in ascending order of tokens. How many
  // tokens before this one chose the expert, its mask says.
  // BEGIN m9.place
  // about 4 lines
  DRILL_TODO("m9.place");
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
    // about 13 lines
    DRILL_TODO("m9.dot");
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
    // about 9 lines
    DRILL_TODO("m9.h");
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
    // about 13 lines
    DRILL_TODO("m9.stream");
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
  // about 13 lines
  DRILL_TODO("m9.share");
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
    // about 3 lines
    DRILL_TODO("m9.order");
    // END m9.order
  }
}

// ---- T > 4: mma.sync, 16 rows of W by eight tokens. lane = 4 * g + quad.

// The next stage of the warp's ring. ask() asks for one more stage, which goes where the stage
// before this one was, and closes a group of copies, also behind the end. kStages - 1 have been
// asked for before the first call.
template <class Ask>
__device__ __forceinline__ const unsigned char* next_stage(Ring& ring, const Ask& ask) {
  // The stage has arrived when this lane's copies have and those of the others; the one before may
  // be overwritten when all lanes have read it.
  // BEGIN m9.ring
  // about 3 lines
  DRILL_TODO("m9.ring");
  // END m9.ring
  return ring.next_used();
}

// What a warp multiplies without a break: 16 rows of W by all tokens of a run, over columns begin
// .. end - 1. GEMM1: the gate and up rows of eight columns of h; GEMM2: 16 columns of y, one split.
struct Piece {
  Run run;
  int number;  // of the piece in its run and split
  int split;
  int begin;
  int end;
};

template <bool GEMM1>
__device__ __forceinline__ int pieces_of_split(const Sizes& s) {
  return GEMM1 ? s.intermediate_size / 8 : (s.hidden_size + kPieceRows - 1) / kPieceRows;
}

// Number `item` of all pieces, run by run.
template <bool GEMM1>
__device__ __forceinline__ Piece piece_of(const Problem& p, int item) {
  const int of_split = pieces_of_split<GEMM1>(p.s);
  const int of_run = of_split * (GEMM1 ? 1 : p.splits);
  const int depth = GEMM1 ? p.s.hidden_size : p.s.intermediate_size;
  const int in_run = item % of_run;
  Piece piece = {p.a.runs[item / of_run], in_run % of_split, in_run / of_split, 0, depth};
  if (!GEMM1) {
    // Split `split` of p.splits has its share of the steps of kColumns columns, the last of which
    // may be short. All columns belong to one split.
    // BEGIN m9.split
    // about 3 lines
    DRILL_TODO("m9.split");
    // END m9.split
  }
  return piece;
}

// A warp's requests: the steps of its pieces, one piece behind the other.
template <bool GEMM1>
struct PieceSteps {
  const Problem& p;
  int item;
  int num_items;
  int column = 0;
  int end = 0;
  const __nv_bfloat16* upper = nullptr;  // where this lane's first row of the upper eight starts
  const __nv_bfloat16* lower = nullptr;  // and of the lower eight; null: there are none

  __device__ __forceinline__ void begin() {
    if (item >= num_items) return;
    const Piece piece = piece_of<GEMM1>(p, item);
    column = piece.begin;
    end = piece.end;
    const int row = copied_row();
    const int hidden = p.s.hidden_size;
    const int inner = p.s.intermediate_size;
    const int depth = GEMM1 ? hidden : inner;
    if (GEMM1) {
      // Rows 0 to 7 of the 16 are gate rows 8 * number and on, rows 8 to 15 the up rows of the same
      // columns of h, so that both sums of a column meet in one thread. This lane has row `row` of
      // each eight.
      // BEGIN m9.pair
      // about 4 lines
      DRILL_TODO("m9.pair");
      upper = p.w13 + static_cast<int64_t>(piece.run.expert) * 2 * inner * depth;
      // END m9.pair
    } else {
      const int first = piece.number * kPieceRows + row;
      upper = p.w2 + (static_cast<int64_t>(piece.run.expert) * hidden + first) * depth;
      lower = first + 8 < hidden ? upper + static_cast<int64_t>(8) * depth : nullptr;
    }
  }

  // Asks for the next step, if there is one.
  __device__ __forceinline__ void ask(Ring& ring) {
    unsigned char* stage = ring.next_asked();
    if (item < num_items) {
      copy_columns(stage, upper, lower, GEMM1 ? p.s.hidden_size : p.s.intermediate_size, column,
                   end);
      column += kColumns;
      if (column >= end) {
        item += kWarps * static_cast<int>(gridDim.x);
        begin();
      }
    }
    cp_async_commit();
  }
};

// Adds the piece's rows (g and g + 8 of them) times the row of x or h that starts at rows[j] (token
// g of tile j; -1: none) to sums. next() has the steps' weights.
template <bool GEMM1, int TILES, class Next>
__device__ __forceinline__ void multiply_piece(float (&sums)[TILES][4],
                                               const Problem& p,
                                               const Piece& piece,
                                               const int (&rows)[TILES],
                                               const Next& next) {
  const int g = static_cast<int>(threadIdx.x) % kWarpSize / 4;
  const int quad = static_cast<int>(threadIdx.x) % 4;
  const __nv_bfloat16* tokens = GEMM1 ? p.x : p.a.h;
  const auto load_tokens = [&](int column, int j) {
    const int k = column + quad * kChunk;
    if (k >= piece.end || rows[j] < 0) return make_uint4(0, 0, 0, 0);
    return *reinterpret_cast<const uint4*>(tokens + (rows[j] + k));
  };
  // Tokens are asked for some parts ahead, where there are registers for it.
  constexpr int kAhead = TILES == 1 ? 4 : TILES <= 4 ? 2 : 0;
  uint4 ahead[kAhead > 0 ? kAhead : 1][TILES];
#pragma unroll
  for (int part = 0; part < kAhead; ++part) {
#pragma unroll
    for (int j = 0; j < TILES; ++j) ahead[part][j] = load_tokens(piece.begin + part * kPart, j);
  }
  for (int first = piece.begin; first < piece.end; first += kColumns) {
    const unsigned char* stage = next();
#pragma unroll
    for (int part = 0; part < kColumns / kPart; ++part) {
      const uint4 upper = load_from(stage, g, part * 4 + quad);
      const uint4 lower = load_from(stage, g + 8, part * 4 + quad);
#pragma unroll
      for (int j = 0; j < TILES; ++j) {
        const int column = first + part * kPart;
        const uint4 v =
            kAhead > 0 ? ahead[kAhead > 0 ? part % kAhead : 0][j] : load_tokens(column, j);
        if (kAhead > 0) {
          ahead[kAhead > 0 ? part % kAhead : 0][j] = load_tokens(column + kAhead * kPart, j);
        }
        // A lane's fragment of a wants columns 2 * quad, + 1, + 8 and + 9 of 16; this lane has
        // eight columns side by side. Which column a place stands for does not matter, as long as a
        // and b agree: two mmas, of the first two words and of the last two.
        // BEGIN m9.fragments
        // about 6 lines
        DRILL_TODO("m9.fragments");
        // END m9.fragments
      }
    }
  }
}

// sums[j][i] is row g of the piece and token 2 * quad + i of tile j, sums[j][2 + i] row g + 8.
template <bool GEMM1, int TILES>
__device__ __forceinline__ void store_piece(const Problem& p,
                                            const Piece& piece,
                                            const float (&sums)[TILES][4]) {
  const int g = static_cast<int>(threadIdx.x) % kWarpSize / 4;
  const int quad = static_cast<int>(threadIdx.x) % 4;
  const int hidden = p.s.hidden_size;
#pragma unroll
  for (int j = 0; j < TILES; ++j) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int64_t id = id_at(p.a, piece.run, j * kTile + quad * 2 + i);
      if (id < 0) continue;
      if (GEMM1) {  // gate is row g, up row g + 8
        const float h = silu_and_mul(sums[j][i], sums[j][2 + i]);
        p.a.h[id * p.s.intermediate_size + piece.number * 8 + g] = __float2bfloat16(h);
      } else {
        // y is [splits, T*K, H], in fp32. Row g of the piece is column number * kPieceRows + g; the
        // last piece may have eight rows.
        // BEGIN m9.y
        // about 4 lines
        DRILL_TODO("m9.y");
        // END m9.y
      }
    }
  }
}

template <bool GEMM1, int TILES, class Next>
__device__ __forceinline__ void compute_piece(const Problem& p,
                                              const Piece& piece,
                                              const Next& next) {
  const int g = static_cast<int>(threadIdx.x) % kWarpSize / 4;
  const int depth = GEMM1 ? p.s.hidden_size : p.s.intermediate_size;
  int rows[TILES];  // where the row of x or h of this lane's token of each tile starts; -1: none
#pragma unroll
  for (int j = 0; j < TILES; ++j) {
    const int id = id_at(p.a, piece.run, j * kTile + g);
    rows[j] = id < 0 ? -1 : (GEMM1 ? id / p.s.top_k : id) * depth;
  }
  float sums[TILES][4] = {};
  multiply_piece<GEMM1>(sums, p, piece, rows, next);
  store_piece<GEMM1>(p, piece, sums);
}

template <bool GEMM1, int MOST_TILES>
__global__ void __launch_bounds__(kThreads, kPieceBlocks) pieces_kernel(Problem p) {
  const int thread = static_cast<int>(threadIdx.x);
  const int first = static_cast<int>(blockIdx.x) * kWarps + thread / kWarpSize;
  unsigned char* shared = dynamic_shared();
  Ring ring(shared);
  // Route ended before GEMM1 let GEMM2 start.
  if (GEMM1) wait_for_kernel_in_front();
  let_next_kernel_start();
  // Runs and their ids are looked up piece by piece: from here they come at once.
  const int ids = p.s.num_tokens * p.s.top_k;
  const int most_runs = min(p.s.num_experts, ids);
  Run* runs = reinterpret_cast<Run*>(shared + kRingBytes);
  int32_t* flat_ids = reinterpret_cast<int32_t*>(runs + most_runs);
  for (int i = thread; i < most_runs; i += kThreads) runs[i] = p.a.runs[i];
  for (int i = thread; i < ids; i += kThreads) flat_ids[i] = p.a.flat_ids[i];
  const int num_items = *p.a.num_runs * pieces_of_split<GEMM1>(p.s) * (GEMM1 ? 1 : p.splits);
  p.a.runs = runs;
  p.a.flat_ids = flat_ids;
  __syncthreads();
  PieceSteps<GEMM1> asked = {p, first, num_items};
  asked.begin();
  const auto ask = [&] { asked.ask(ring); };
  const auto next = [&] { return next_stage(ring, ask); };
  for (int stage = 0; stage < kStages - 1; ++stage) ask();
  if (!GEMM1) wait_for_kernel_in_front();
  for (int item = first; item < num_items; item += kWarps * static_cast<int>(gridDim.x)) {
    const Piece piece = piece_of<GEMM1>(p, item);
    with_tiles<MOST_TILES>(piece.run.count, [&](auto tiles) {
      compute_piece<GEMM1, decltype(tiles)::value>(p, piece, next);
    });
  }
}

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
  // about 21 lines
  DRILL_TODO("m9.combine");
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
  const int threads = p.s.num_experts <= 256 ? kRouteThreads<8> : kRouteThreads<32>;
  if (p.s.num_experts <= 256) kernel = route_kernel<8>;
  if (p.s.num_experts <= 128) kernel = route_kernel<4>;
  if (p.s.num_experts <= 64) kernel = route_kernel<2>;
  if (p.s.num_experts <= 32) kernel = route_kernel<1>;
  return launch(kernel, dim3(1), dim3(static_cast<unsigned>(threads)), 0, stream, p.a, logits, p.s,
                renormalize);
}

// Blocks that stay and take one piece of work after another: as many as the GPU holds at once, but
// no more than `most` on a multiprocessor.
cudaError_t launch_persistent(
    void (*kernel)(Problem), int most, size_t shared_bytes, const Problem& p, cudaStream_t stream) {
  int multiprocessors = 0;
  int device = 0;
  int room = 0;
  cudaError_t status = count_multiprocessors(&multiprocessors);
  if (status == cudaSuccess) status = cudaGetDevice(&device);
  if (status == cudaSuccess) {
    status = cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device);
  }
  if (status != cudaSuccess) return status;
  constexpr int kOfCuda = 1024;  // bytes of each block
  const int fit = room / (static_cast<int>(shared_bytes) + kOfCuda);
  const int blocks = multiprocessors * (fit < 1 ? 1 : fit < most ? fit : most);
  return launch(behind_kernel_in_front(kernel), kernel, dim3(static_cast<unsigned>(blocks)),
                dim3(kThreads), shared_bytes, stream, p);
}

cudaError_t launch_gemv1(const Problem& p, cudaStream_t stream) {
  if (p.s.num_tokens == 1) {
    return launch_persistent(gemv1_kernel<1>, kGemv1Blocks<1>, 0, p, stream);
  }
  return launch_persistent(gemv1_kernel<kMaxGemvTokens>, kGemv1Blocks<kMaxGemvTokens>, 0, p,
                           stream);
}

// At most two tiles, as 16 tokens have, leave registers for more of their values under way.
template <bool GEMM1>
cudaError_t launch_pieces(const Problem& p, cudaStream_t stream) {
  const size_t ids = static_cast<size_t>(p.s.num_tokens) * static_cast<size_t>(p.s.top_k);
  const size_t experts = static_cast<size_t>(p.s.num_experts);
  const size_t bytes =
      kRingBytes + (ids < experts ? ids : experts) * sizeof(Run) + ids * sizeof(int32_t);
  auto* kernel = p.s.num_tokens <= 2 * kTile ? pieces_kernel<GEMM1, 2>
                                             : pieces_kernel<GEMM1, kMaxTokens / kTile>;
  return launch_persistent(kernel, kPieceBlocks, bytes, p, stream);
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
  cudaError_t status = launch_route(p, logits, renormalize, stream);
  if (status != cudaSuccess) return status;
  // Up to kMaxGemvTokens tokens: launch_gemv1 and launch_gemv2. Above: launch_pieces for GEMM1 and
  // for GEMM2, and launch_combine. The first error is returned.
  // BEGIN m9.launches
  // about 7 lines
  DRILL_TODO("m9.launches");
  return cudaSuccess;
  // END m9.launches
}

}  // namespace moe::DRILL_SIDE::m9
