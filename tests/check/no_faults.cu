// Right kernels that look much like the wrong ones: nothing may be said about them. See
// fault_case.h.
#include <drills/hopper.h>
#include <drills/ptx.h>

#include "fault_case.h"

namespace {

using check::Arrays;

__device__ int thread() {
  return static_cast<int>(threadIdx.x);
}

// case barriers_on_both_sides: nothing
__global__ void barriers_on_both_sides(Arrays a) {
  __shared__ float tile[64];
  float sum = 0;
  for (int turn = 0; turn < 3; ++turn) {
    tile[thread()] = a.x[thread() % 32];
    __syncthreads();
    sum += tile[63 - thread()];
    __syncthreads();
  }
  if (thread() < 32) a.out[thread()] = sum;
}
FAULT_CASE(barriers_on_both_sides, 1, 64, 0)

// case syncwarp_between_lanes: nothing
__global__ void syncwarp_between_lanes(Arrays a) {
  __shared__ float tile[64];
  tile[thread()] = a.x[thread() % 32];
  __syncwarp();
  const float other = tile[thread() ^ 1];
  __syncwarp();
  tile[thread()] = other;
  if (thread() < 32) a.out[thread()] = tile[thread()];
}
FAULT_CASE(syncwarp_between_lanes, 1, 64, 0)

// case the_last_block_adds_up: nothing
__global__ void the_last_block_adds_up(Arrays a) {
  __shared__ bool last;
  const int block = static_cast<int>(blockIdx.x);
  a.out[block * 8 + thread()] = a.x[thread()];
  __threadfence();
  __syncthreads();
  if (thread() == 0) last = atomicAdd(a.flag, 1) == 2;
  __syncthreads();
  if (!last) return;
  __threadfence();
  a.out[24 + thread()] = a.out[thread()] + a.out[8 + thread()] + a.out[16 + thread()];
}
FAULT_CASE(the_last_block_adds_up, 3, 8, 0)

// case a_flag_with_its_order: nothing
__global__ void a_flag_with_its_order(Arrays a) {
  if (blockIdx.x == 0) {
    a.out[thread()] = a.x[thread()];
    __syncthreads();
    if (thread() == 0) moe::add_release(a.flag, 1);
  } else {
    if (thread() == 0) {
      while (moe::load_acquire(a.flag) == 0) {
      }
    }
    __syncthreads();
    a.out[8 + thread()] = a.out[7 - thread()];
  }
}
FAULT_CASE(a_flag_with_its_order, 2, 8, 0)

// case a_histogram: nothing
__global__ void a_histogram(Arrays a) {
  __shared__ int counts[4];
  if (thread() < 4) counts[thread()] = 0;
  __syncthreads();
  atomicAdd(&counts[thread() % 4], 1);
  __syncthreads();
  if (thread() < 4) a.out[thread()] = static_cast<float>(counts[thread()]);
}
FAULT_CASE(a_histogram, 1, 96, 0)

// case two_buffers_of_copies: nothing
__global__ void two_buffers_of_copies(Arrays a) {
  auto* tiles = moe::dynamic_shared<float>();
  const auto load = [&](int turn) {
    if (thread() < 8)
      moe::cp_async16(tiles + turn % 2 * 32 + 4 * thread(), a.x + 4 * thread(), true);
    moe::cp_async_commit();
  };
  float sum = 0;
  load(0);
  for (int turn = 0; turn < 4; ++turn) {
    if (turn < 3) load(turn + 1);
    if (turn < 3) {
      moe::cp_async_wait<1>();
    } else {
      moe::cp_async_wait<0>();
    }
    __syncthreads();
    sum += tiles[turn % 2 * 32 + thread() % 32];
    __syncthreads();
  }
  if (thread() < 32) a.out[thread()] = sum;
}
FAULT_CASE(two_buffers_of_copies, 1, 64, 256)

// case a_ring_of_mbarriers: nothing
__global__ void a_ring_of_mbarriers(Arrays a) {
  auto* tile = moe::dynamic_shared<float>();
  auto* full = reinterpret_cast<std::uint64_t*>(moe::dynamic_shared() + 512);
  std::uint64_t* empty = full + 1;
  if (thread() == 0) {
    moe::mbarrier_init(full, 32);
    moe::mbarrier_init(empty, 1);
    moe::mbarrier_init_fence();
  }
  __syncthreads();
  for (std::uint32_t turn = 0; turn < 4; ++turn) {
    if (thread() < 32) {
      if (turn > 0) moe::mbarrier_wait(empty, (turn - 1) & 1);
      tile[thread()] = a.x[thread()];
      moe::mbarrier_arrive(full);
    } else {
      moe::mbarrier_wait(full, turn & 1);
      a.out[thread() - 32] = tile[63 - thread()];
      __syncwarp();
      if (thread() == 32) moe::mbarrier_arrive(empty);
    }
  }
}
FAULT_CASE(a_ring_of_mbarriers, 1, 64, 1024)

// case named_barriers_between_warps: nothing
__global__ void named_barriers_between_warps(Arrays a) {
  __shared__ float tile[32];
  if (thread() < 32) {
    tile[thread()] = a.x[thread()];
    moe::named_barrier_arrive(1, 64);
  } else {
    moe::named_barrier_sync(1, 64);
    a.out[thread() - 32] = tile[63 - thread()];
  }
}
FAULT_CASE(named_barriers_between_warps, 1, 64, 0)

// case the_next_kernel_reads: nothing
__global__ void the_next_kernel_reads_kernel(Arrays a, bool second) {
  if (second) {
    a.out[16 + thread()] = a.out[15 - thread()];
  } else {
    a.out[thread()] = a.x[thread()];
  }
}
void run_two_kernels(const Arrays& a) {
  (void)moe::launch(the_next_kernel_reads_kernel, 1, 16, 0, nullptr, a, false);
  (void)moe::launch(the_next_kernel_reads_kernel, 1, 16, 0, nullptr, a, true);
}
const check::FaultCase case_two_kernels("the_next_kernel_reads", run_two_kernels);

}  // namespace
