#include <drills/m8_persistent.h>

#include <cfloat>
#include <cstdlib>

#include <drills/launch.h>
#include <drills/layer_arrays.h>
#include <drills/wgmma.h>

namespace moe::DRILL_SIDE::m8 {
namespace {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
#ifndef UNIT
#define UNIT 16
#endif
#ifndef FREE1
#define FREE1 100000
#endif
#ifndef FREE2
#define FREE2 2
#endif
constexpr int kUnit = UNIT;  // tokens of a tile are a multiple of this

// ---- What the kernels hand to each other.

// A run of token tiles that belong to one expert; one entry for each of its tiles.
struct alignas(16) Run {
  int expert;
  int first_tile;  // number of the run's first token tile
  int num_tiles;
  int first_row;  // of the expert in the sorted order
  int tile_rows;  // rows of all its tiles but the last
  int rows;       // of the expert, a multiple of kUnit
  int ready_when;  // GEMM2: reports of GEMM1 that complete the expert's rows of h
  int unused;
};

struct Arrays {
  int32_t* next_tile;  // [2] of GEMM1 and GEMM2: tiles handed out
  int32_t* ready;      // [E] finished parts of the expert's rows of h
  // Routing.
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

constexpr int kTokens1 = 128;  // of a tile of GEMM1

// Tokens of the longest tile of GEMM2: enough for most experts if all get the same.
int max_tokens_of(int num_tokens, int num_experts, int top_k) {
  const int64_t rows = static_cast<int64_t>(num_tokens) * top_k / num_experts;
  if (rows <= 48) return 64;
  return rows <= 112 ? 128 : 256;
}

constexpr int kMaxRouteBlocks = 128;

int tokens_of_route_block(int num_tokens) {
  const int tokens = (num_tokens + kMaxRouteBlocks - 1) / kMaxRouteBlocks;
  return tokens < 16 ? 16 : tokens;
}
int route_blocks(int num_tokens) {
  const int tokens = tokens_of_route_block(num_tokens);
  return (num_tokens + tokens - 1) / tokens;
}

Arrays arrays_of(void* workspace,
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

// ---- Routing.

constexpr uint32_t kTaken = 0;
constexpr uint32_t kNanKey = 1;

__device__ uint32_t key_of(float logit) {
  if (logit != logit) return kNanKey;
  const float number = fminf(fmaxf(logit, -FLT_MAX), FLT_MAX) + 0.0f;
  const uint32_t bits = __float_as_uint(number);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ float logit_of(uint32_t key) {
  return __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}
__device__ float warp_sum(float value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

constexpr int kRouteThreads = 512;

// One warp a token: top-k as in m1, and how many rows each expert gets.
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
  const float* row = logits + static_cast<int64_t>(token) * num_experts;
  uint32_t keys[PER_LANE];
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    const int expert = lane + i * kWarpSize;
    keys[i] = expert < num_experts ? key_of(row[expert]) : kTaken;
  }
  uint32_t largest = kTaken;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) largest = max(largest, keys[i]);
  largest = __reduce_max_sync(kAllLanes, largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    if (keys[i] > kNanKey) sum += expf(logit_of(keys[i]) - logit_of(largest));
  }
  sum = warp_sum(sum);

  int my_id = 0;
  uint32_t my_key = kTaken;
  for (int slot = 0; slot < top_k; ++slot) {
    uint32_t best = kTaken;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) best = max(best, keys[i]);
    best = __reduce_max_sync(kAllLanes, best);
    unsigned candidate = UINT_MAX;
#pragma unroll
    for (int i = PER_LANE - 1; i >= 0; --i) {
      if (keys[i] == best) candidate = static_cast<unsigned>(lane + i * kWarpSize);
    }
    const unsigned expert = __reduce_min_sync(kAllLanes, candidate);
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
      if (static_cast<unsigned>(lane + i * kWarpSize) == expert) keys[i] = kTaken;
    }
    if (lane == slot) {
      my_id = static_cast<int>(expert);
      my_key = best;
    }
  }
  float weight = 0.0f;
  if (my_key > kNanKey) weight = expf(logit_of(my_key) - logit_of(largest)) / sum;
  if (renormalize) {
    const float chosen = warp_sum(weight);
    if (chosen > 0.0f) weight /= chosen;
  }
  if (lane < top_k) {
    const int64_t position = static_cast<int64_t>(token) * top_k + lane;
    a.topk_ids[position] = my_id;
    a.topk_weights[position] = weight;
    atomicAdd(&block_counts[my_id], 1);
  }
  }
  __syncthreads();
  for (int e = thread; e < num_experts; e += kRouteThreads) {
    a.counts[static_cast<int64_t>(blockIdx.x) * num_experts + e] = block_counts[e];
    if (blockIdx.x == 0) a.ready[e] = 0;
  }
  if (blockIdx.x == 0 && thread < 2) a.next_tile[thread] = 0;
}

constexpr int kPlaceThreads = 1024;

__device__ int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

// Each block takes the tokens that the same block of route took. All blocks add up the counts of all.
__global__ void __launch_bounds__(kPlaceThreads)
    place_kernel(Arrays a, int num_ids, int num_experts, int top_k, int block_ids, int max_tokens, int reports_of_tile) {
  __shared__ int totals[kMaxExperts];  // rows of an expert; then its next free row
  __shared__ int before[kMaxExperts];  // of them, from tokens of earlier blocks
  __shared__ int warp_rows[kWarpSize];
  __shared__ int warp_tiles[2][kWarpSize];
  griddepcontrol_launch_dependents();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize;
  const int warp = thread / kWarpSize;
  if (thread < num_experts) totals[thread] = before[thread] = 0;
  __syncthreads();
  griddepcontrol_wait();
  {
    const int stride = round_up(num_experts, kWarpSize);
    const int parts = kPlaceThreads / stride;
    const int expert = thread % stride;
    const int blocks = static_cast<int>(gridDim.x);
    int total = 0;
    int earlier = 0;
    if (thread < parts * stride && expert < num_experts) {
#pragma unroll 8
      for (int b = thread / stride; b < blocks; b += parts) {
        const int count = a.counts[static_cast<int64_t>(b) * num_experts + expert];
        total += count;
        if (b < static_cast<int>(blockIdx.x)) earlier += count;
      }
      atomicAdd(&totals[expert], total);
      atomicAdd(&before[expert], earlier);
    }
  }
  __syncthreads();
  const int count = thread < num_experts ? totals[thread] : 0;
  const int rows = round_up(count, kUnit);
  const int tiles[2] = {(rows + kTokens1 - 1) / kTokens1, (rows + max_tokens - 1) / max_tokens};
  int row_sum = rows;  // inclusive scans
  int tile_sum[2] = {tiles[0], tiles[1]};
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const int r = __shfl_up_sync(kAllLanes, row_sum, distance);
    const int t0 = __shfl_up_sync(kAllLanes, tile_sum[0], distance);
    const int t1 = __shfl_up_sync(kAllLanes, tile_sum[1], distance);
    if (lane >= distance) {
      row_sum += r;
      tile_sum[0] += t0;
      tile_sum[1] += t1;
    }
  }
  if (lane == kWarpSize - 1) {
    warp_rows[warp] = row_sum;
    warp_tiles[0][warp] = tile_sum[0];
    warp_tiles[1][warp] = tile_sum[1];
  }
  __syncthreads();
  int first_row = row_sum - rows;
  int first_tile[2] = {tile_sum[0] - tiles[0], tile_sum[1] - tiles[1]};
  const int busy_warps = (num_experts + kWarpSize - 1) / kWarpSize;
  for (int w = 0; w < min(warp, busy_warps); ++w) {
    first_row += warp_rows[w];
    first_tile[0] += warp_tiles[0][w];
    first_tile[1] += warp_tiles[1][w];
  }
  if (thread < num_experts) {
    totals[thread] = first_row + before[thread];
    if (thread % static_cast<int>(gridDim.x) == static_cast<int>(blockIdx.x)) {
#pragma unroll
      for (int g = 0; g < 2; ++g) {
        // GEMM1 wants whole tiles and a short last one, GEMM2 tiles of the same length.
        const int tile_rows = g == 0 ? kTokens1 : round_up((rows + max(tiles[1], 1) - 1) / max(tiles[1], 1), kUnit);
        for (int i = 0; i < tiles[g]; ++i) {
          a.runs[g][first_tile[g] + i] = {thread, first_tile[g], tiles[g], first_row, tile_rows, rows, tiles[0] * reports_of_tile, 0};
        }
      }
      for (int i = count; i < rows; ++i) a.sorted_token[first_row + i] = -1;
    }
  }
  if (blockIdx.x == 0 && thread == kPlaceThreads - 1) {
    a.num_tiles[0] = first_tile[0] + tiles[0];
    a.num_tiles[1] = first_tile[1] + tiles[1];
  }
  __syncthreads();
  // One warp places the ids in order, 32 at a time.
  if (warp != 0) return;
  const int first = static_cast<int>(blockIdx.x) * block_ids;
  const int last = min(num_ids, first + block_ids);
  const int bits = kWarpSize - __clz(num_experts - 1);
  for (int i = first; i < last; i += kWarpSize) {
    const int id = i + lane;
    const int expert = id < last ? a.topk_ids[id] : 0;
    unsigned same = __ballot_sync(kAllLanes, id < last);
    for (int bit = 0; bit < bits; ++bit) {
      const unsigned ones = __ballot_sync(kAllLanes, (expert >> bit & 1) != 0);
      same &= (expert >> bit & 1) != 0 ? ones : ~ones;
    }
    const int rank = __popc(same & ((1u << lane) - 1));
    int place = 0;
    if (id < last) place = totals[expert] + rank;
    __syncwarp();
    if (id < last) {
      if (rank == 0) totals[expert] += __popc(same);
      a.sorted_row[id] = place;
      a.sorted_token[place] = id / top_k;
    }
    __syncwarp();
  }
}

// ---- The GEMMs: D[rows of W, tokens] = W tile * tokens^T.

constexpr int BLOCK_K = 64;
constexpr int kBoxRows = 128;  // rows of W in one bulk copy
constexpr int kWarpgroup = 128;
constexpr int kThreads = 3 * kWarpgroup;
constexpr int kConsumerWarps = 8;
constexpr int kChunk = 8;
constexpr int kSlabBytes = 8192;

// GEMM1: 256 rows of W, 128 of gate and 128 of up, by at most 128 tokens; GEMM2: 128 rows by 256.
template <bool GEMM1, int MAX_TOKENS>
struct SharedTiles {
  static constexpr int kWRows = GEMM1 ? 256 : 128;
  static constexpr int kStageBytes = (kWRows + MAX_TOKENS) * BLOCK_K * 2;
  static constexpr int STAGES = 196608 / kStageBytes;
  __nv_bfloat16 w[STAGES][kWRows][BLOCK_K];
  __nv_bfloat16 tokens[STAGES][MAX_TOKENS][BLOCK_K];
  unsigned char slabs[2][2][kSlabBytes];
  int4 tile[STAGES];  // (expert, tokens, first row, column tile); expert -1: the end
  uint64_t full[STAGES];
  uint64_t empty[STAGES];
  int next_pid;
};

struct Problem {
  const __nv_bfloat16* x;
  const int32_t* sorted_token;
  const Run* runs;
  const int32_t* num_tiles;
  int32_t* next_tile;
  int32_t* ready;
  int claim;        // tiles that a block takes at a time: 1
  int free_rounds;  // of tiles that are left to who comes first
  int columns;
  int depth;
};

template <int STAGES>
struct RingPlace {
  int stage = 0;
  uint32_t parity = 0;
  __device__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct Tile {
  int n;
  int tokens;
  int row;
  int expert;
  int ready_when;
};

__device__ Tile tile_of(int pid, int num_pid_n, const Run* runs) {
  const Run run = runs[pid / num_pid_n];
  const int in_run = pid - run.first_tile * num_pid_n;
  const int local = in_run % run.num_tiles;
  const int before = local * run.tile_rows;
  return {in_run / run.num_tiles, min(run.tile_rows, run.rows - before), run.first_row + before, run.expert, run.ready_when};
}

__device__ void silu_and_mul(const float (&gate)[4], const float (&up)[4], float (&h)[4]) {
  float g[4];
  float a[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    g[i] = gate[i] < -20.0f ? -20.0f : gate[i];
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

__device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const uint32_t*>(&pair);
}

// GEMM2: d (+)= 64 rows of W * N tokens^T.
template <int N, int MAX>
__device__ __forceinline__ void multiply(float (&d)[MAX], uint64_t w, uint64_t t, bool first) {
  auto& part = reinterpret_cast<float(&)[N / 2]>(d);
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < BLOCK_K / 16; ++k) wgmma_bf16(part, w + 2 * k, t + 2 * k, !first || k > 0);
  wgmma_commit();
}

// GEMM1: d (+)= 64 tokens * (128 rows of gate, 128 of up)^T.
__device__ __forceinline__ void multiply(float (&d)[128], uint64_t t, uint64_t w, bool first) {
  wgmma_fence();
#pragma unroll
  for (int k = 0; k < BLOCK_K / 16; ++k) wgmma_bf16(d, t + 2 * k, w + 2 * k, !first || k > 0);
  wgmma_commit();
}

#define CASE(i)                                                                          \
  case i:                                                                                \
    if (i * kUnit <= MAX_TOKENS) multiply<(i * kUnit <= MAX_TOKENS ? i * kUnit : kUnit)>(accumulators, w, t, turn == 0); \
    break;

#define LOOP(i)                                                                          \
  case i:                                                                                \
    for (int turn = kSlabs; turn < turns; ++turn) {                                      \
      wait_full();                                                                       \
      const uint64_t w = wgmma_descriptor(tiles.w[place.stage][consumer * 64]);          \
      const uint64_t t = wgmma_descriptor(tiles.tokens[place.stage]);                    \
      if (i * kUnit <= MAX_TOKENS) multiply<(i * kUnit <= MAX_TOKENS ? i * kUnit : kUnit)>(accumulators, w, t, false); \
      release();                                                                         \
    }                                                                                    \
    break;

template <bool GEMM1, int MAX_TOKENS>
__global__ void __launch_bounds__(kThreads, 1)
    gemm_kernel(const __grid_constant__ CUtensorMap w_map,
                const __grid_constant__ CUtensorMap h_map,
                const __grid_constant__ CUtensorMap out_map,       // boxes of kUnit rows
                const __grid_constant__ CUtensorMap out_map_64,  // boxes of 64 rows
                Problem p) {
  using Shared = SharedTiles<GEMM1, MAX_TOKENS>;
  constexpr int STAGES = Shared::STAGES;
  constexpr int kColumns = 128;
  constexpr int kSlabTokens = 64;
  constexpr int kSlabs = MAX_TOKENS / kSlabTokens;
  constexpr int kHeld = MAX_TOKENS / 4;
  constexpr int kRowsOfThread = MAX_TOKENS / 16;

  auto& tiles = *dynamic_shared<Shared>();
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warpgroup = thread / kWarpgroup;
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  const int num_pid_n = (p.columns + kColumns - 1) / kColumns;

  if (thread == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(&tiles.full[s], GEMM1 ? 1 + kWarpgroup : 1);
      mbarrier_init(&tiles.empty[s], kConsumerWarps);
    }
    mbarrier_init_fence();
  }
  __syncthreads();
  if (GEMM1) griddepcontrol_wait();
  griddepcontrol_launch_dependents();

  if (warpgroup == 0) {
    setmaxnreg_dec<GEMM1 ? 56 : 40>();
    if (!GEMM1 && thread != 0) return;
    RingPlace<STAGES> place;
    place.parity = 1;
    const int num_tiles = *p.num_tiles * num_pid_n;
    const int step = static_cast<int>(gridDim.x);
    // The first rounds are dealt out in turn: neighbours then ask for the same W at the same time.
    const int dealt = max(1, num_tiles / step - p.free_rounds);
    int round = 0;
    const int my_chunk = thread % kChunk;
    const int my_row = thread / kChunk;
    // Eight lanes copy the eight chunks of the same rows; each knows the tokens of two of them.
    int next_tokens[2] = {};  // of rows my_row + 16 * my_chunk, and 128 rows further
    const auto look_up = [&](const Tile& tile) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = my_row + 16 * my_chunk + 128 * i;
        next_tokens[i] = GEMM1 && row < tile.tokens ? p.sorted_token[tile.row + row] : -1;
      }
    };

    int pid = static_cast<int>(blockIdx.x);
    Tile tile = {};
    if (pid < num_tiles) {
      tile = tile_of(pid, num_pid_n, p.runs);
      look_up(tile);
    }
    while (pid < num_tiles) {
      // Where the chunks that this thread copies start, in bytes from the start of x.
      uint32_t offsets[kRowsOfThread];
      unsigned valid = 0;
      bool all_valid = true;
      if (GEMM1) {
#pragma unroll
        for (int i = 0; i < kRowsOfThread; ++i) {
          const int token = __shfl_sync(kAllLanes, next_tokens[i / kChunk], i % kChunk, kChunk);
          offsets[i] = static_cast<uint32_t>(max(token, 0)) * static_cast<uint32_t>(p.depth) * 2u + static_cast<uint32_t>(my_chunk) * 16u;
          valid |= (token >= 0 ? 1u : 0u) << i;
        }
        all_valid = tile.tokens == MAX_TOKENS && __all_sync(kAllLanes, valid == (1u << kRowsOfThread) - 1) != 0;
      } else {
        while (load_acquire(&p.ready[tile.expert]) < tile.ready_when) {
        }
        fence_proxy_async_global();
      }
      const int token_boxes = (tile.tokens + 63) / 64;
      int next_pid = 0;
      Tile next = tile;
      for (int turn = 0; turn < turns; ++turn) {
        const int s = place.stage;
        const int k = turn * BLOCK_K;
        mbarrier_wait(&tiles.empty[s], place.parity);
        if (thread == 0) {
          tiles.tile[s] = make_int4(tile.expert, tile.tokens, tile.row, tile.n);
          mbarrier_arrive_expect_tx(&tiles.full[s], static_cast<int>(sizeof(tiles.w[0])) +
                                                        (GEMM1 ? 0 : token_boxes * 64 * BLOCK_K * 2));
          if (GEMM1) {
            tma_load(tiles.w[s], w_map, k, tile.n * kColumns, tile.expert, &tiles.full[s]);
            tma_load(tiles.w[s][kBoxRows], w_map, k, p.columns + tile.n * kColumns, tile.expert, &tiles.full[s]);
          } else {
            tma_load(tiles.w[s], w_map, k, tile.n * kColumns, tile.expert, &tiles.full[s]);
            for (int i = 0; i < token_boxes; ++i) {
              tma_load(tiles.tokens[s][i * 64], h_map, k, tile.row + i * 64, &tiles.full[s]);
            }
          }
        }
        if (GEMM1) {
          const char* source = reinterpret_cast<const char*>(p.x) + turn * 128;
          __nv_bfloat16* target = &tiles.tokens[s][my_row][(my_chunk ^ my_row % 8) * kChunk];
          if (all_valid && k + BLOCK_K <= p.depth) {
#pragma unroll
            for (int i = 0; i < kRowsOfThread; ++i) cp_async16(target + i * 16 * BLOCK_K, source + offsets[i]);
          } else {
            const bool in_row = k + my_chunk * kChunk < p.depth;
#pragma unroll
            for (int i = 0; i < kRowsOfThread; ++i) {
              if (i >= 4 && tile.tokens <= 64) break;
              cp_async16(target + i * 16 * BLOCK_K, in_row ? source + offsets[i] : reinterpret_cast<const char*>(p.x), in_row && (valid >> i & 1) != 0);
            }
          }
          cp_async_mbarrier_arrive_noinc(&tiles.full[s]);
        }
        if (turn == 0 && thread == 0) {
          ++round;
          next_pid = round < dealt ? pid + step : dealt * step + atomicAdd(p.next_tile, p.claim);
        }
        if (turn == min(2, turns - 1)) {
          if (GEMM1) {
            if (thread == 0) tiles.next_pid = next_pid;
            named_barrier_sync(3, kWarpgroup);
            next_pid = tiles.next_pid;
          }
          if (next_pid < num_tiles) next = tile_of(next_pid, num_pid_n, p.runs);
        }
        if (turn == min(4, turns - 1) && next_pid < num_tiles) look_up(next);
        place.advance();
      }
      if (GEMM1) named_barrier_sync(3, kWarpgroup);
      pid = next_pid;
      tile = next;
    }
    mbarrier_wait(&tiles.empty[place.stage], place.parity);
    if (thread == 0) {
      tiles.tile[place.stage] = make_int4(-1, 0, 0, 0);
      mbarrier_arrive(&tiles.full[place.stage]);
    }
    if (GEMM1) mbarrier_arrive(&tiles.full[place.stage]);
    return;
  }

  // ---- Consumers.
  setmaxnreg_inc<GEMM1 ? 224 : 232>();
  const int consumer = warpgroup - 1;
  const int warp = thread / 32 % 4;
  const int barrier = 1 + consumer;
  const bool storer = thread % kWarpgroup == 0;
  RingPlace<STAGES> place;
  float accumulators[GEMM1 ? 128 : MAX_TOKENS / 2];
  uint32_t held[kHeld];
  int4 held_tile = {};
  bool pending = false;
  int report = -1;

  const auto store_slab = [&](int slab) {
    const int first = slab * kSlabTokens;
    if (!GEMM1 && first >= held_tile.y) return;
    unsigned char* buffer = tiles.slabs[consumer][slab % 2];
    if (storer) bulk_wait_read<1>();
    named_barrier_sync(barrier, kWarpgroup);
#pragma unroll
    for (int i = 0; i < kSlabTokens / 16; ++i) {
      const uint32_t* quad = &held[slab * kSlabTokens / 4 + 4 * i];
      const uint32_t pairs[4] = {quad[0], quad[1], quad[2], quad[3]};
      if (GEMM1) {
        const int row = warp * 16 + lane % 16;
        stmatrix_x4(buffer + row * 128 + (((2 * i + lane / 16) ^ (row % 8)) * 16), pairs);
        continue;
      }
      const int token = i * 16 + lane / 16 * 8 + lane % 8;
      stmatrix_x4_trans(buffer + token * 128 + (((warp * 2 + lane / 8 % 2) ^ (token % 8)) * 16), pairs);
    }
    fence_proxy_async();
    named_barrier_sync(barrier, kWarpgroup);
    if (storer) {
      // GEMM1: this warpgroup has 64 tokens and all columns, GEMM2 all tokens and 64 columns.
      const int column = held_tile.w * kColumns + (GEMM1 ? slab : consumer) * 64;
      const int first_token = GEMM1 ? consumer * 64 : first;
      if (first_token + 64 <= held_tile.y) {
        tma_store(out_map_64, buffer, column, held_tile.z + first_token);
      } else {
        for (int t = 0; first_token + t < held_tile.y; t += kUnit) {
          tma_store(out_map, buffer + t * 128, column, held_tile.z + first_token + t);
        }
      }
      bulk_commit();
    }
  };
  const auto report_tile = [&] {
    if (GEMM1 && report >= 0) {
      if (storer) {
        bulk_wait<0>();
        fence_proxy_async_global();
        add_release(&p.ready[report], 1);
      }
      report = -1;
    }
  };

  for (;;) {
    mbarrier_wait(&tiles.full[place.stage], place.parity);
    const int4 tile = tiles.tile[place.stage];
    if (tile.x < 0) break;
    const int units = tile.y / kUnit;
    const auto wait_full = [&] {
      mbarrier_wait(&tiles.full[place.stage], place.parity);
      if (GEMM1) fence_proxy_async();
    };
    const auto release = [&] {
      wgmma_wait<0>();
      if (lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
      place.advance();
    };
    const int report_turn = min(turns, 8);
    const auto pack_pairs = [&](int j, const float* c, const float* u) {
      if (GEMM1) {
        const float gate[4] = {c[0], c[1], c[2], c[3]};
        const float up[4] = {u[0], u[1], u[2], u[3]};
        float h[4];
        silu_and_mul(gate, up, h);
        held[2 * j] = pack(h[0], h[1]);
        held[2 * j + 1] = pack(h[2], h[3]);
      } else {
        held[2 * j] = pack(c[0], c[1]);
        held[2 * j + 1] = pack(c[2], c[3]);
      }
    };
    if (GEMM1 && consumer == 1 && tile.y <= 64) {  // nothing to do but to hand the stages back
      for (int turn = 0; turn < turns; ++turn) {
        mbarrier_wait(&tiles.full[place.stage], place.parity);
        if (turn == 0 && pending) {
          store_slab(0);
          store_slab(1);
        }
        if (turn + 1 == report_turn) report_tile();
        if (lane == 0) mbarrier_arrive(&tiles.empty[place.stage]);
        place.advance();
      }
      pending = false;
      report = tile.x;
      report_tile();
      continue;
    }
    if constexpr (GEMM1) {
      const auto multiply_turn = [&](int turn) {
        wait_full();
        multiply(accumulators, wgmma_descriptor(tiles.tokens[place.stage][consumer * 64]),
                 wgmma_descriptor(tiles.w[place.stage]), turn == 0);
      };
#pragma unroll
      for (int turn = 0; turn < kSlabs; ++turn) {
        if (turn < turns) {
          multiply_turn(turn);
          if (pending) store_slab(turn);
          release();
        } else if (pending) {
          store_slab(turn);
        }
      }
      int turn = kSlabs;
      for (; turn < report_turn; ++turn) {
        multiply_turn(turn);
        release();
      }
      report_tile();
      for (; turn < turns; ++turn) {
        multiply_turn(turn);
        release();
      }
    } else {
      // The first turns, with a slab each; then a loop for each number of tokens.
      const auto store_pending = [&](int slab) {
        if (!pending) return;
        if (slab == 0) store_slab(0);
        if (slab == 1 && kSlabs > 1) store_slab(1);
        if (slab == 2 && kSlabs > 2) store_slab(2);
        if (slab == 3 && kSlabs > 3) store_slab(3);
      };
      const int first_turns = min(turns, kSlabs);
#pragma unroll 1
      for (int turn = 0; turn < first_turns; ++turn) {
        wait_full();
        const uint64_t w = wgmma_descriptor(tiles.w[place.stage][consumer * 64]);
        const uint64_t t = wgmma_descriptor(tiles.tokens[place.stage]);
        switch (units) {
          CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)
          CASE(12) CASE(13) CASE(14) CASE(15) CASE(16)
        }
        store_pending(turn);
        release();
      }
      for (int slab = first_turns; slab < kSlabs; ++slab) store_pending(slab);
      switch (units) {
        LOOP(1) LOOP(2) LOOP(3) LOOP(4) LOOP(5) LOOP(6) LOOP(7) LOOP(8) LOOP(9) LOOP(10) LOOP(11)
        LOOP(12) LOOP(13) LOOP(14) LOOP(15) LOOP(16)
      }
    }
#pragma unroll
    for (int j = 0; j < (GEMM1 ? 16 : MAX_TOKENS / 8); ++j) {
      if (!GEMM1 && 8 * j >= tile.y) break;
      pack_pairs(j, &accumulators[4 * j], &accumulators[GEMM1 ? 64 + 4 * j : 0]);
    }
    held_tile = tile;
    pending = true;
    report = tile.x;
  }
  if (pending) {
#pragma unroll
    for (int s = 0; s < kSlabs; ++s) store_slab(s);
  }
  report_tile();
  if (storer) bulk_wait<0>();
}

// ---- The sum over the slots of a token.

constexpr int kCombineThreads = 256;

__global__ void __launch_bounds__(kCombineThreads)
    combine_kernel(__nv_bfloat16* out, Arrays a, int top_k, int hidden_size) {
  griddepcontrol_wait();
  const int64_t token = blockIdx.x;
  const int32_t* rows = a.sorted_row + token * top_k;
  const float* weights = a.topk_weights + token * top_k;
  for (int column = static_cast<int>(threadIdx.x) * kChunk; column < hidden_size;
       column += kCombineThreads * kChunk) {
    float sums[kChunk] = {};
    for (int first = 0; first < top_k; first += 8) {
      uint4 values[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (first + i >= top_k) break;
        values[i] = __ldcs(reinterpret_cast<const uint4*>(a.y + static_cast<int64_t>(rows[first + i]) * hidden_size + column));
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (first + i >= top_k) break;
        const float weight = weights[first + i];
        const uint32_t pairs[4] = {values[i].x, values[i].y, values[i].z, values[i].w};
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          sums[2 * c] += weight * __uint_as_float(pairs[c] << 16);
          sums[2 * c + 1] += weight * __uint_as_float(pairs[c] & 0xffff0000u);
        }
      }
    }
    const uint4 packed = {pack(sums[0], sums[1]), pack(sums[2], sums[3]), pack(sums[4], sums[5]), pack(sums[6], sums[7])};
    *reinterpret_cast<uint4*>(out + token * hidden_size + column) = packed;
  }
}

template <int MAX_TOKENS>
cudaError_t launch_gemms(const Arrays& a,
                         const __nv_bfloat16* x,
                         const __nv_bfloat16* w13,
                         const __nv_bfloat16* w2,
                         int num_experts,
                         int hidden_size,
                         int intermediate_size,
                         int part,
                         cudaStream_t stream) {
  int device = 0;
  int multiprocessors = 0;
  cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (status != cudaSuccess) return status;
  const auto experts = static_cast<uint64_t>(num_experts);
  const auto hidden = static_cast<uint64_t>(hidden_size);
  const auto inner = static_cast<uint64_t>(intermediate_size);
  CUtensorMap w13_map, w2_map, h_store, h_64, y_store, y_64;
  status = make_tensor_map(&w13_map, w13, {hidden, 2 * inner, experts}, kBoxRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&w2_map, w2, {inner, hidden, experts}, kBoxRows);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&h_store, a.h, {inner, a.max_rows}, kUnit);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&h_64, a.h, {inner, a.max_rows}, 64);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&y_64, a.y, {hidden, a.max_rows}, 64);
  if (status != cudaSuccess) return status;
  status = make_tensor_map(&y_store, a.y, {hidden, a.max_rows}, kUnit);
  if (status != cudaSuccess) return status;
  Problem p = {};
  p.x = x;
  p.sorted_token = a.sorted_token;
  p.runs = a.runs[0];
  p.num_tiles = a.num_tiles;
  p.next_tile = a.next_tile;
  p.ready = a.ready;
  p.claim = 1;
  p.free_rounds = FREE1;
  p.columns = intermediate_size;
  p.depth = hidden_size;
  const dim3 grid(static_cast<unsigned>(multiprocessors));
  LaunchOptions after;
  after.programmatic = true;
  status = launch(after, gemm_kernel<true, kTokens1>, grid, dim3(kThreads), sizeof(SharedTiles<true, kTokens1>), stream, w13_map, h_64, h_store, h_64, p);
  if (status != cudaSuccess || part == 3) return status;
  p.runs = a.runs[1];
  p.num_tiles = a.num_tiles + 1;
  p.next_tile = a.next_tile + 1;
  p.free_rounds = FREE2;
  p.columns = hidden_size;
  p.depth = intermediate_size;
  return launch(after, gemm_kernel<false, MAX_TOKENS>, grid, dim3(kThreads), sizeof(SharedTiles<false, MAX_TOKENS>), stream, w2_map, h_64, y_store, y_64, p);
}

template <int PER_LANE>
cudaError_t launch_route(const Arrays& a, const float* logits, int num_tokens, int num_experts, int top_k, bool renormalize, cudaStream_t stream) {
  return launch(route_kernel<PER_LANE>, dim3(static_cast<unsigned>(route_blocks(num_tokens))), dim3(kRouteThreads), 0, stream, a, logits, num_tokens, num_experts, top_k, tokens_of_route_block(num_tokens), renormalize);
}

}  // namespace

size_t moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  return arrays_of(nullptr, num_tokens, num_experts, top_k, hidden_size, intermediate_size).bytes;
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
  const char* part_text = getenv("M8_PART");
  const int part = part_text ? atoi(part_text) : 99;
  const Arrays a = arrays_of(workspace, num_tokens, num_experts, top_k, hidden_size, intermediate_size);
  cudaError_t status = cudaSuccess;
  if (num_experts <= 32) status = launch_route<1>(a, logits, num_tokens, num_experts, top_k, renormalize, stream);
  else if (num_experts <= 64) status = launch_route<2>(a, logits, num_tokens, num_experts, top_k, renormalize, stream);
  else if (num_experts <= 128) status = launch_route<4>(a, logits, num_tokens, num_experts, top_k, renormalize, stream);
  else if (num_experts <= 256) status = launch_route<8>(a, logits, num_tokens, num_experts, top_k, renormalize, stream);
  else status = launch_route<32>(a, logits, num_tokens, num_experts, top_k, renormalize, stream);
  if (status != cudaSuccess || part == 1) return status;
  LaunchOptions after;
  after.programmatic = true;
  const int max_tokens = max_tokens_of(num_tokens, num_experts, top_k);
  const int num_ids = num_tokens * top_k;
  status = launch(after, place_kernel, dim3(static_cast<unsigned>(route_blocks(num_tokens))), dim3(kPlaceThreads), 0, stream, a, num_ids, num_experts, top_k, tokens_of_route_block(num_tokens) * top_k, max_tokens, 2 * ((intermediate_size + 127) / 128));
  if (status != cudaSuccess || part == 2) return status;
  if (max_tokens == 256) status = launch_gemms<256>(a, x, w13, w2, num_experts, hidden_size, intermediate_size, part, stream);
  else if (max_tokens == 128) status = launch_gemms<128>(a, x, w13, w2, num_experts, hidden_size, intermediate_size, part, stream);
  else status = launch_gemms<64>(a, x, w13, w2, num_experts, hidden_size, intermediate_size, part, stream);
  if (status != cudaSuccess || part == 3 || part == 4) return status;
  return launch(after, combine_kernel, dim3(static_cast<unsigned>(num_tokens)), dim3(kCombineThreads), 0, stream, out, a, top_k, hidden_size);
}

}  // namespace moe::DRILL_SIDE::m8
