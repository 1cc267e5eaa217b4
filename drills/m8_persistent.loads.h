// m8_persistent.loads.h: given to m8. What the warps that load say to each other, to the consumers
// and to the other block of the cluster; and the warps that gather tokens.
//
// In each block thread 0 loads: it takes the next tile, copies W (and GEMM2's tokens) by TMA, and
// reports finished tiles. In GEMM1 the other three warps of its warpgroup gather the tokens. The
// consumers, two warpgroups, know nothing of the order of tiles: a tile travels with its stage.
//
// In a cluster of two blocks each loads one half of what both need, for both: it arrives at the
// same place in both. So a stage is free when the consumers of both blocks have handed it back, to
// both; and both blocks work on tiles of the same pair, whose number block 0 takes and sends.
#pragma once

#include <drills/m8_persistent.tiles.h>

namespace moe::DRILL_SIDE::m8 {

// All threads of the cluster meet.
template <int CLUSTER>
__device__ inline void meet_cluster() {
  if (CLUSTER > 1) {
    cluster_sync();
  } else {
    __syncthreads();
  }
}

// At the end: until all are here the other block sends arrivals and data to this one.
template <int CLUSTER>
__device__ inline void leave_cluster() {
  __syncwarp();
  if (CLUSTER > 1) cluster_sync();
}

// One lane for each block: the warp no longer reads the stage.
template <int CLUSTER>
__device__ __forceinline__ void hand_back_stage(uint64_t* empty) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  if (CLUSTER == 1) {
    if (lane == 0) mbarrier_arrive(empty);
  } else {
    if (lane < CLUSTER) mbarrier_arrive_remote(empty, lane);
  }
}

// Thread 0 of each block: the number of the next tile, from block 0 to all.
template <int CLUSTER, class Shared>
class NextTile {
 public:
  __device__ NextTile(Shared& tiles, int rank) : tiles_(tiles), rank_(rank) {}

  __device__ void send(int number) {
    if (CLUSTER == 1) {
      number_ = number;
      return;
    }
    mbarrier_arrive_expect_tx(&tiles_.sent, sizeof(int));
    if (rank_ != 0) return;
    mbarrier_wait(&tiles_.read, parity_ ^ 1);  // all have read the number before
    for (int r = 0; r < CLUSTER; ++r) store_async_remote(&tiles_.next_pid, number, &tiles_.sent, r);
  }

  __device__ int receive() {
    if (CLUSTER == 1) return number_;
    mbarrier_wait(&tiles_.sent, parity_);
    const int number = tiles_.next_pid;
    mbarrier_arrive_remote(&tiles_.read, 0);
    parity_ ^= 1;
    return number;
  }

 private:
  Shared& tiles_;
  int rank_;
  int number_ = 0;
  uint32_t parity_ = 0;
};

// Thread 0, GEMM1: tells the gathering warps the rows of the next tile. No tokens: there is none.
template <class Shared>
class Jobs {
 public:
  __device__ explicit Jobs(Shared& tiles) : tiles_(tiles) {}

  __device__ void post(const Tile& tile) {
    mbarrier_wait(&tiles_.job_taken, parity_ ^ 1);
    tiles_.job = make_int2(tile.row, tile.tokens);
    mbarrier_arrive(&tiles_.job_posted);
    parity_ ^= 1;
  }

 private:
  Shared& tiles_;
  uint32_t parity_ = 0;
};

// GEMM1, warps 1 to 3: rows of x, wherever they are, by cp.async. Eight lanes copy the eight chunks
// of a row; a thread has the rows my_row, my_row + 12, .. of a tile.
template <int MAX_TOKENS>
__device__ __forceinline__ void gather_tokens(SharedTiles<true, MAX_TOKENS>& tiles,
                                              const Problem& p) {
  constexpr int kStep = kGatherThreads / kChunk;
  constexpr int kRowsOfThread = kMaxTokens1 / kStep;
  const int thread = static_cast<int>(threadIdx.x) - kWarpSize;
  const int lane = thread % kWarpSize;
  const int my_chunk = thread % kChunk;
  const int my_row = thread / kChunk;
  const int turns = (p.depth + BLOCK_K - 1) / BLOCK_K;
  RingPlace<SharedTiles<true, MAX_TOKENS>::STAGES> place;
  place.parity = 1;  // the ring starts empty
  uint32_t parity = 0;
  // Each of the eight lanes looks up two rows, the my_chunk-th and the one eight further; -1: none.
  int found[2] = {-1, -1};
  const auto take_job = [&] {  // returns the tokens of the next tile
    mbarrier_wait(&tiles.job_posted, parity);
    const int2 job = tiles.job;
    __syncwarp();
    if (lane == 0) mbarrier_arrive(&tiles.job_taken);
    parity ^= 1;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = my_row + kStep * (my_chunk + kChunk * i);
      found[i] = row < job.y ? p.sorted_token[job.x + row] : -1;
    }
    return job.y;
  };

  int tokens = take_job();
  while (tokens > 0) {
    const char* sources[kRowsOfThread];
    unsigned valid = 0;
#pragma unroll
    for (int i = 0; i < kRowsOfThread; ++i) {
      const int token = __shfl_sync(kAllLanes, found[i / kChunk], i % kChunk, kChunk);
      sources[i] = reinterpret_cast<const char*>(
          p.x + static_cast<int64_t>(max(token, 0)) * p.depth + my_chunk * kChunk);
      valid |= (token >= 0 ? 1u : 0u) << i;
    }
    int next = 0;
#pragma unroll 2
    for (int turn = 0; turn < turns; ++turn) {
      const int s = place.stage;
      mbarrier_wait(&tiles.empty[s], place.parity);
      // Where nothing is read the address may lie behind x.
      const unsigned read = turn * BLOCK_K + my_chunk * kChunk < p.depth ? valid : 0;
#pragma unroll
      for (int i = 0; i < kRowsOfThread; ++i) {
        // Rows that the tile has not are not multiplied: 64 behind a half tile, a long tile's unit.
        if (i == (64 + kStep - 1) / kStep && tokens <= 64) break;
        if (i == (kTokens1 + kStep - 1) / kStep && tokens <= kTokens1) break;
        const int row = my_row + i * kStep;
        cp_async16(&tiles.tokens[s][row][(my_chunk ^ row % 8) * kChunk], sources[i] + turn * 128,
                   (read >> i & 1) != 0);
      }
      cp_async_mbarrier_arrive_noinc(&tiles.full[s]);
      // A few turns ahead, since the answer takes a microsecond.
      if (turn == min(6, turns - 1)) next = take_job();
      place.advance();
    }
    tokens = next;
  }
  mbarrier_wait(&tiles.empty[place.stage], place.parity);
  mbarrier_arrive(&tiles.full[place.stage]);  // of the stage that says that all is done
}

}  // namespace moe::DRILL_SIDE::m8
