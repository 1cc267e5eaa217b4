// Mistakes between threads: barriers, warps, copies, flags. See fault_case.h.
#include <drills/hopper.h>
#include <drills/ptx.h>

#include "fault_case.h"

namespace {

using check::Arrays;

__device__ int thread() {
  return static_cast<int>(threadIdx.x);
}

// case different_barriers, order: divergence
__global__ void different_barriers(Arrays a) {
  if (thread() < 32) {
    __syncthreads();  // <-
  } else {
    __syncthreads();  // <-
  }
  a.out[0] = 1;
}
FAULT_CASE(different_barriers, 1, 64, 0)

// case returns_before_the_barrier, order: divergence
__global__ void returns_before_the_barrier(Arrays a) {
  if (thread() == 7) return;
  __syncthreads();  // <-
  a.out[thread() % 32] = 1;
}
FAULT_CASE(returns_before_the_barrier, 1, 64, 0)

// case shuffle_of_half_a_warp, order: divergence
__global__ void shuffle_of_half_a_warp(Arrays a) {
  float sum = a.x[thread()];
  if (thread() < 16) {
    sum += __shfl_xor_sync(0xffffffff, sum, 1);  // <-
  } else {
    __syncwarp();  // <-
  }
  a.out[thread()] = sum;
}
FAULT_CASE(shuffle_of_half_a_warp, 1, 32, 0)

// case no_barrier_after_the_load, order: race
__global__ void no_barrier_after_the_load(Arrays a) {
  __shared__ float tile[64];
  tile[thread()] = 0;
  __syncthreads();
  tile[thread()] = a.x[thread() % 32];                       // <-
  if (thread() < 32) a.out[thread()] = tile[63 - thread()];  // <-
}
FAULT_CASE(no_barrier_after_the_load, 1, 64, 0)

// case no_barrier_before_the_next_load, order: race
__global__ void no_barrier_before_the_next_load(Arrays a) {
  __shared__ float tile[64];
  float sum = 0;
  for (int turn = 0; turn < 2; ++turn) {
    tile[thread()] = a.x[thread() % 32];  // <-
    __syncthreads();
    sum += tile[63 - thread()];  // <-
  }
  if (thread() < 32) a.out[thread()] = sum;
}
FAULT_CASE(no_barrier_before_the_next_load, 1, 64, 0)

// case no_syncwarp, order: race
__global__ void no_syncwarp(Arrays a) {
  __shared__ float tile[32];
  tile[thread()] = 0;
  __syncwarp();
  tile[thread()] = a.x[thread()];         // <-
  a.out[thread()] = tile[31 - thread()];  // <-
}
FAULT_CASE(no_syncwarp, 1, 32, 0)

// case all_threads_write_one_sum, order: race
__global__ void all_threads_write_one_sum(Arrays a) {
  __shared__ float sum;
  if (thread() == 0) sum = 0;
  __syncthreads();
  sum += a.x[thread() % 32];  // <-
  __syncthreads();
  if (thread() == 0) a.out[0] = sum;
}
FAULT_CASE(all_threads_write_one_sum, 1, 64, 0)

// case two_blocks_write_a_row, order: race
__global__ void two_blocks_write_a_row(Arrays a) {
  a.out[thread()] = a.x[thread()];  // <-
}
FAULT_CASE(two_blocks_write_a_row, 2, 8, 0)

// case block_reads_the_row_of_another, order: race
__global__ void block_reads_the_row_of_another(Arrays a) {
  const int block = static_cast<int>(blockIdx.x);
  float* row = a.out + block * 8;
  row[thread()] = a.x[thread()];                      // <-
  if (block > 0) row[thread()] += row[thread() - 8];  // <-
}
FAULT_CASE(block_reads_the_row_of_another, 2, 8, 0)

// case flag_without_a_fence, order: race
__global__ void flag_without_a_fence(Arrays a) {
  if (blockIdx.x == 0) {
    a.out[0] = a.x[0];  // <-
    atomicAdd(a.flag, 1);
  } else {
    while (moe::load_acquire(a.flag) == 0) {
    }
    a.out[1] = a.out[0];  // <-
  }
}
FAULT_CASE(flag_without_a_fence, 2, 1, 0)

// case atomic_beside_a_plain_read, order: race
__global__ void atomic_beside_a_plain_read(Arrays a) {
  __shared__ int count;
  if (thread() == 0) count = 0;
  __syncthreads();
  if (thread() < 32) atomicAdd(&count, 1);  // <-
  if (thread() == 32) a.flag[0] = count;    // <-
}
FAULT_CASE(atomic_beside_a_plain_read, 1, 64, 0)

__device__ __align__(16) float* tile16() {
  return moe::dynamic_shared<float>();
}

// case no_wait, order: missing wait
__global__ void no_wait(Arrays a) {
  moe::cp_async16(tile16() + 4 * thread(), a.x + 4 * thread(), true);  // <-
  moe::cp_async_commit();
  __syncthreads();
  a.out[thread()] = tile16()[thread()];  // <-
  moe::cp_async_wait<0>();
}
FAULT_CASE(no_wait, 1, 8, 128)

// case no_wait_at_all, order: missing wait
__global__ void no_wait_at_all(Arrays a) {
  moe::cp_async16(tile16() + 4 * thread(), a.x + 4 * thread(), true);  // <-
  moe::cp_async_commit();
}
FAULT_CASE(no_wait_at_all, 1, 8, 128)

// case no_commit, order: missing wait
__global__ void no_commit(Arrays a) {
  moe::cp_async16(tile16() + 4 * thread(), a.x + 4 * thread(), true);  // <-
  moe::cp_async_wait<0>();
  __syncthreads();
  a.out[thread()] = tile16()[thread()];  // <-
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
}
FAULT_CASE(no_commit, 1, 8, 128)

// case one_group_too_few, order: missing wait
__global__ void one_group_too_few(Arrays a) {
  moe::cp_async16(tile16() + 4 * thread(), a.x + 4 * thread(), true);  // <-
  moe::cp_async_commit();
  moe::cp_async_wait<1>();
  __syncthreads();
  a.out[thread()] = tile16()[thread()];  // <-
  moe::cp_async_wait<0>();
}
FAULT_CASE(one_group_too_few, 1, 8, 128)

// case wait_without_a_barrier, order: race
__global__ void wait_without_a_barrier(Arrays a) {
  moe::cp_async16(tile16() + 4 * thread(), a.x + 4 * thread() % 32, true);  // <-
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  const float mine = tile16()[4 * thread()];
  const float other = thread() >= 32 ? tile16()[4 * (thread() - 32)] : 0;  // <-
  if (thread() >= 32) a.out[thread() - 32] = mine + other;
}
FAULT_CASE(wait_without_a_barrier, 1, 64, 1024)

// case copy_into_what_is_read, order: race
__global__ void copy_into_what_is_read(Arrays a) {
  tile16()[thread()] = a.x[thread() % 32];
  __syncthreads();
  const float sum = tile16()[63 - thread()];                               // <-
  if (thread() < 16) moe::cp_async16(tile16() + 4 * thread(), a.x, true);  // <-
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  if (thread() < 32) a.out[thread()] = sum;
}
FAULT_CASE(copy_into_what_is_read, 1, 64, 256)

__device__ std::uint64_t* barrier() {
  return reinterpret_cast<std::uint64_t*>(moe::dynamic_shared() + 512);
}

__device__ void init_barrier(int arrivals) {
  if (thread() == 0) {
    moe::mbarrier_init(barrier(), arrivals);
    moe::mbarrier_init_fence();
  }
  __syncthreads();
}

// case mbarrier_never_initialised, order: mbarrier
__global__ void mbarrier_never_initialised(Arrays a) {
  moe::mbarrier_arrive(barrier());  // <-
  a.out[0] = 1;
}
FAULT_CASE(mbarrier_never_initialised, 1, 1, 1024)

// case mbarrier_of_too_many, order: mbarrier
__global__ void mbarrier_of_too_many(Arrays a) {
  init_barrier(2);
  if (thread() == 0) moe::mbarrier_arrive_expect_tx(barrier(), 16);
  __syncwarp();
  moe::mbarrier_arrive(barrier());  // <-
  a.out[thread()] = 1;
}
FAULT_CASE(mbarrier_of_too_many, 1, 32, 1024)

// case mbarrier_of_too_few, order: deadlock
__global__ void mbarrier_of_too_few(Arrays a) {
  init_barrier(64);
  if (thread() < 32) moe::mbarrier_arrive(barrier());
  moe::mbarrier_wait(barrier(), 0);
  a.out[thread() % 32] = 1;
}
FAULT_CASE(mbarrier_of_too_few, 1, 64, 1024)

// case named_barrier_of_too_few, order: deadlock
__global__ void named_barrier_of_too_few(Arrays a) {
  if (thread() < 32) moe::named_barrier_sync(1, 64);
  a.out[thread() % 32] = 1;
}
FAULT_CASE(named_barrier_of_too_few, 1, 64, 0)

// case arrives_before_the_warp_has_read, order: race
__global__ void arrives_before_the_warp_has_read(Arrays a) {
  auto* tile = moe::dynamic_shared<float>();
  init_barrier(1);
  if (thread() < 32) tile[thread()] = a.x[thread()];
  __syncthreads();
  if (thread() < 32) {
    a.out[thread()] = tile[31 - thread()];  // <-
    if (thread() == 0) moe::mbarrier_arrive(barrier());
  } else {
    moe::mbarrier_wait(barrier(), 0);
    tile[thread() - 32] = 0;  // <-
  }
}
FAULT_CASE(arrives_before_the_warp_has_read, 1, 64, 1024)

// case reads_before_the_mbarrier, order: race
__global__ void reads_before_the_mbarrier(Arrays a) {
  auto* tile = moe::dynamic_shared<float>();
  init_barrier(32);
  if (thread() < 32) {
    tile[thread()] = a.x[thread()];  // <-
    moe::mbarrier_arrive(barrier());
  } else {
    a.out[thread() - 32] = tile[thread() - 32];  // <-
    moe::mbarrier_wait(barrier(), 0);
  }
}
FAULT_CASE(reads_before_the_mbarrier, 1, 64, 1024)

// case endless_loop, memory: hang
__global__ void endless_loop(Arrays a) {
  volatile float* x = a.x;
  while (x[0] < 5) {  // <-
  }
}
FAULT_CASE(endless_loop, 1, 1, 0)

}  // namespace
