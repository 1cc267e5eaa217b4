// m9_decode.products.h: given to m9. Both products for T > 4, by mma.sync: a warp takes one piece
// of W after another and multiplies it by the tokens of its run. lane = 4 * g + quad.
#pragma once

#include <type_traits>

#include <drills/dependent_launch.h>
#include <drills/launch.h>
#include <drills/m9_decode.pieces.h>

namespace moe::DRILL_SIDE::m9 {

// What a warp multiplies without a break: 16 rows of W by all tokens of a run, over columns begin
// .. end - 1. GEMM1: the gate and up rows of eight columns of h; GEMM2: 16 columns of y, one split.
struct Piece {
  Run run;
  int number;  // of the piece in its run and split
  int split;
  int begin;
  int end;
};

struct Columns {
  int begin;
  int end;
};

// Where the rows that a lane copies start: of the upper eight of a piece, of the lower eight.
struct RowPair {
  const __nv_bfloat16* upper;
  const __nv_bfloat16* lower;
};

// Yours. The columns of split `split` of `splits`, which share `depth` columns.
__device__ __forceinline__ Columns columns_of_split(int depth, int split, int splits);
// Yours. GEMM1: rows `row` of the upper and of the lower eight of a piece.
__device__ __forceinline__ RowPair rows_of_pair(const Problem& p, const Piece& piece, int row);
// Yours. Adds 32 columns of 16 rows of W times eight tokens; a lane has eight of the columns, of
// two rows and one token.
__device__ __forceinline__ void multiply_part(float (&sums)[4],
                                              const uint4& upper,
                                              const uint4& lower,
                                              const uint4& v);
// Yours. GEMM2: row g of the piece and row g + 8, of the token with this flat id, to y.
__device__ __forceinline__ void store_y(
    const Problem& p, const Piece& piece, int64_t id, int g, const float (&sums)[4], int i);
// Yours. The next stage of the warp's ring.
template <class Ask>
__device__ __forceinline__ const unsigned char* next_stage(Ring& ring, const Ask& ask);

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
    const Columns columns = columns_of_split(depth, piece.split, p.splits);
    piece.begin = columns.begin;
    piece.end = columns.end;
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
      const RowPair pair = rows_of_pair(p, piece, row);
      upper = pair.upper;
      lower = pair.lower;
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
        multiply_part(sums[j], upper, lower, v);
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
        store_y(p, piece, id, g, sums[j], i);
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

}  // namespace moe::DRILL_SIDE::m9
