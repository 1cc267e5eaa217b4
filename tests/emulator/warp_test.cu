// Warp and block functions that need more than the layout program checks: partial warps, masks,
// several collectives at once, block-wide votes.
#include "emulator_test.h"

namespace {

using WarpTest = EmulatorTest;
constexpr unsigned kAll = 0xffffffffu;

__global__ void quarters(int* out) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned mask = 0xffu << lane / 8 * 8;
  int value = static_cast<int>(threadIdx.x);
  // Each quarter of the warp takes a different number of steps.
  for (unsigned i = 0; i <= lane / 8; ++i)
    value = __shfl_xor_sync(mask, value, 1 + static_cast<int>(i));
  out[threadIdx.x] = value;
}

TEST_F(WarpTest, SeparateMasksDontWaitForEachOther) {
  DeviceArray<int> out(64);
  ASSERT_EQ(moe::launch(quarters, 1, 64, 0, nullptr, out.get()), cudaSuccess);
  const int flips[4] = {1, 1 ^ 2, 1 ^ 2 ^ 3, 1 ^ 2 ^ 3 ^ 4};
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(out.host()[static_cast<std::size_t>(i)], i ^ flips[i % 32 / 8]);
  }
}

__global__ void pairs(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  const unsigned mask = 3u << (lane & ~1);
  out[lane] = __shfl_xor_sync(mask, lane, 1);
}

TEST_F(WarpTest, SixteenCollectivesAtOnce) {
  DeviceArray<int> out(32);
  ASSERT_EQ(moe::launch(pairs, 1, 32, 0, nullptr, out.get()), cudaSuccess);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out.host()[static_cast<std::size_t>(i)], i ^ 1);
}

__global__ void partial_warp(unsigned* out) {
  out[threadIdx.x] = __ballot_sync(kAll, threadIdx.x % 2 == 0 ? 1 : 0);
  out[threadIdx.x] += __reduce_add_sync(kAll, 1u);
}

TEST_F(WarpTest, LanesThatDontExistAreNotWaitedFor) {
  DeviceArray<unsigned> out(5);
  ASSERT_EQ(moe::launch(partial_warp, 1, 5, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host()[4], 0x15u + 5u);
}

__global__ void returned_lanes(unsigned* out) {
  if (threadIdx.x >= 20) return;
  out[threadIdx.x] = __reduce_add_sync(kAll, threadIdx.x);
  __syncwarp();
}

TEST_F(WarpTest, LanesThatReturnedAreNotWaitedFor) {
  DeviceArray<unsigned> out(32);
  ASSERT_EQ(moe::launch(returned_lanes, 1, 32, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host()[0], 190u);
}

__global__ void block_votes(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i * 4] = __syncthreads_count(i % 3 == 0 ? 5 : 0);
  out[i * 4 + 1] = __syncthreads_and(i < 99 ? 1 : 0);
  out[i * 4 + 2] = __syncthreads_and(i < 100 ? 2 : 0);
  out[i * 4 + 3] = __syncthreads_or(i == 98 ? 1 : 0) * 2 + __syncthreads_or(i > 99 ? 1 : 0);
}

TEST_F(WarpTest, BarriersVote) {
  DeviceArray<int> out(400);
  ASSERT_EQ(moe::launch(block_votes, 1, 100, 0, nullptr, out.get()), cudaSuccess);
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(out.host()[i * 4], 34);
    EXPECT_EQ(out.host()[i * 4 + 1], 0);
    EXPECT_EQ(out.host()[i * 4 + 2], 1);
    EXPECT_EQ(out.host()[i * 4 + 3], 2);
  }
}

__global__ void indices(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  __syncthreads();
  atomicAdd(&out[block * 24 + thread], thread + 100 * block + 1);
}

TEST_F(WarpTest, IndicesCountXFirst) {
  DeviceArray<unsigned> out(24 * 30);
  ASSERT_EQ(moe::launch(indices, dim3(5, 3, 2), dim3(4, 3, 2), 0, nullptr, out.get()), cudaSuccess);
  for (unsigned block = 0; block < 30; ++block) {
    for (unsigned i = 0; i < 24; ++i) EXPECT_EQ(out.host()[block * 24 + i], i + 100 * block + 1);
  }
}

__global__ void atomics_of_all_blocks(int* counter, float* sum, unsigned long long* largest) {
  atomicAdd(counter, 1);
  atomicAdd(sum, 0.5f);
  atomicMax(largest, static_cast<unsigned long long>(blockIdx.x) << 40);
}

TEST_F(WarpTest, AtomicsWorkAcrossWorkers) {
  emulator::options().workers = 4;
  DeviceArray<int> counter(1);
  DeviceArray<float> sum(1);
  DeviceArray<unsigned long long> largest(1);
  ASSERT_EQ(moe::launch(atomics_of_all_blocks, 200, 128, 0, nullptr, counter.get(), sum.get(),
                        largest.get()),
            cudaSuccess);
  EXPECT_EQ(counter.host()[0], 25600);
  EXPECT_EQ(sum.host()[0], 12800.0f);
  EXPECT_EQ(largest.host()[0], 199ull << 40);
}

}  // namespace
