// m8_persistent.place.h: given to m8. place: from the counts of route to the tables of tiles, and
// to a row for each slot. Its three steps are yours.
#pragma once

#include <drills/m8_persistent.routing.h>

namespace moe::DRILL_SIDE::m8 {

inline constexpr int kPlaceThreads = 1024;
inline constexpr int kRounds = 8;  // of 32 ids: loads that a lane of place_ids has under way

struct PlaceShared {
  int totals[kMaxExperts];  // rows of an expert; then its next free row for this block
  int before[kMaxExperts];  // rows of it that tokens of earlier blocks take
  int order[kMaxExperts];   // of work: the experts' numbers
  int warp_rows[kWarpSize];
  int warp_tiles[2][kWarpSize];
};

__device__ inline int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

// ---- In the kernel file, with their meaning; what is yours is marked there.

__device__ void add_up_counts(PlaceShared& shared, const Arrays& a, int num_experts);
__device__ int tiles_of_gemm1(int rows);
__device__ void write_runs(const Arrays& a,
                           int expert,
                           int rows,
                           const int (&tiles)[2],
                           int first_row,
                           const int (&first_tile)[2],
                           int reports_of_tile);
__device__ void place_ids(
    PlaceShared& shared, const Arrays& a, int first, int last, int num_experts, int top_k);

// The sums over all threads below this one, of rows and of both numbers of tiles.
__device__ inline void exclusive_scan(
    PlaceShared& shared, int num_experts, int rows, const int (&tiles)[2], int (&sums)[3]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  int row_sum = rows;  // inclusive, in the warp
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
    shared.warp_rows[warp] = row_sum;
    shared.warp_tiles[0][warp] = tile_sum[0];
    shared.warp_tiles[1][warp] = tile_sum[1];
  }
  __syncthreads();
  sums[0] = row_sum - rows;
  sums[1] = tile_sum[0] - tiles[0];
  sums[2] = tile_sum[1] - tiles[1];
  const int busy_warps = (num_experts + kWarpSize - 1) / kWarpSize;
  for (int w = 0; w < min(warp, busy_warps); ++w) {
    sums[0] += shared.warp_rows[w];
    sums[1] += shared.warp_tiles[0][w];
    sums[2] += shared.warp_tiles[1][w];
  }
}

// The expert that this thread gets: thread 0 that whose tiles come first. As they are numbered; but
// if one has more than twice its share, long and short ones in turn: the longest, the shortest, the
// second longest, .. Where an expert has few rows its weights are what takes time, where it has
// many, the products.
__device__ inline int order_of_work(PlaceShared& shared, int num_ids, int num_experts) {
  const int thread = static_cast<int>(threadIdx.x);
  const int mine = thread < num_experts ? shared.totals[thread] : 0;
  const bool skewed = __syncthreads_or(static_cast<int64_t>(mine) * num_experts > 2LL * num_ids);
  if (!skewed) return thread;
  if (thread < num_experts) {
    int rank = 0;
#pragma unroll 8
    for (int e = 0; e < num_experts; ++e) {
      const int other = shared.totals[e];
      rank += other > mine || (other == mine && e < thread) ? 1 : 0;
    }
    const int last = num_experts - 1;
    shared.order[2 * rank <= last ? 2 * rank : 2 * (last - rank) + 1] = thread;
  }
  __syncthreads();
  return thread < num_experts ? shared.order[thread] : 0;
}

// Each block takes the tokens that the same block of route took. All blocks add up the counts of
// all; each writes the runs of its share of the experts.
static __global__ void __launch_bounds__(kPlaceThreads) place_kernel(Arrays a,
                                                                     int num_ids,
                                                                     int num_experts,
                                                                     int top_k,
                                                                     int block_ids,
                                                                     int max_tokens,
                                                                     int reports_of_tile) {
  __shared__ PlaceShared shared;
  griddepcontrol_launch_dependents();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < num_experts) shared.totals[thread] = shared.before[thread] = 0;
  __syncthreads();
  griddepcontrol_wait();
  add_up_counts(shared, a, num_experts);
  __syncthreads();
  const int expert = order_of_work(shared, num_ids, num_experts);
  const int count = thread < num_experts ? shared.totals[expert] : 0;
  const int rows = round_up(count, kUnit);
  const int tiles[2] = {tiles_of_gemm1(rows), (rows + max_tokens - 1) / max_tokens};
  int sums[3] = {};
  exclusive_scan(shared, num_experts, rows, tiles, sums);
  const int first_row = sums[0];
  const int first_tile[2] = {sums[1], sums[2]};
  if (thread < num_experts) {
    shared.totals[expert] = first_row + shared.before[expert];
    if (thread % static_cast<int>(gridDim.x) == static_cast<int>(blockIdx.x)) {
      write_runs(a, expert, rows, tiles, first_row, first_tile, reports_of_tile);
      for (int i = count; i < rows; ++i) a.sorted_token[first_row + i] = -1;
    }
  }
  if (blockIdx.x == 0 && thread == kPlaceThreads - 1) {  // no expert above it: the sums of all
    a.num_tiles[0] = first_tile[0] + tiles[0];
    a.num_tiles[1] = first_tile[1] + tiles[1];
  }
  __syncthreads();
  const int first = static_cast<int>(blockIdx.x) * block_ids;
  if (thread < kWarpSize) {
    place_ids(shared, a, first, min(num_ids, first + block_ids), num_experts, top_k);
  }
}

inline cudaError_t launch_place(
    const Arrays& a, const Sizes& s, int max_tokens, int reports_of_tile, cudaStream_t stream) {
  LaunchOptions after;
  after.programmatic = true;
  return launch(after, place_kernel, dim3(static_cast<unsigned>(route_blocks(s.num_tokens))),
                dim3(kPlaceThreads), 0, stream, a, s.num_tokens * s.top_k, s.num_experts, s.top_k,
                tokens_of_route_block(s.num_tokens) * s.top_k, max_tokens, reports_of_tile);
}

}  // namespace moe::DRILL_SIDE::m8
