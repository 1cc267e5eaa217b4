// Thread orders and poisoned shared memory: how a missing barrier shows.
#include "emulator_test.h"

#include <algorithm>
#include <cmath>

namespace {

using OrderTest = EmulatorTest;
using emulator::Order;

// Each thread reads what its mirror wrote.
__global__ void mirror(float* out, bool with_barrier) {
  __shared__ float values[128];
  values[threadIdx.x] = static_cast<float>(threadIdx.x);
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = values[127 - threadIdx.x];
}

int wrong_mirrors(bool with_barrier) {
  DeviceArray<float> out(128);
  EXPECT_EQ(moe::launch(mirror, 1, 128, 0, nullptr, out.get(), with_barrier), cudaSuccess);
  const std::vector<float> values = out.host();
  int wrong = 0;
  for (int i = 0; i < 128; ++i) {
    wrong += values[static_cast<std::size_t>(i)] != static_cast<float>(127 - i) ? 1 : 0;
  }
  return wrong;
}

TEST_F(OrderTest, MissingBarrierShowsInEveryOrder) {
  for (const Order order : {Order::kForward, Order::kReverse, Order::kShuffle}) {
    emulator::options().order = order;
    EXPECT_EQ(wrong_mirrors(true), 0);
#ifndef EMULATOR_ASAN  // statics can't be poisoned there: the values of the run before remain
    EXPECT_GT(wrong_mirrors(false), 0);
#endif
  }
}

__global__ void first_thread(int* out, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if (atomicAdd(&out[rounds + i], 1) == 0) out[i] = static_cast<int>(threadIdx.x);
    __syncthreads();
  }
}

std::vector<int> first_threads(Order order, std::uint64_t seed) {
  constexpr int kRounds = 8;
  emulator::options().order = order;
  emulator::options().seed = seed;
  DeviceArray<int> out(2 * kRounds);
  EXPECT_EQ(moe::launch(first_thread, 1, 256, 0, nullptr, out.get(), kRounds), cudaSuccess);
  std::vector<int> first = out.host();
  first.resize(kRounds);
  return first;
}

TEST_F(OrderTest, OrdersDifferAndRepeat) {
  EXPECT_EQ(first_threads(Order::kForward, 1)[0], 0);
  EXPECT_EQ(first_threads(Order::kReverse, 1)[0], 255);
  const std::vector<int> shuffled = first_threads(Order::kShuffle, 1);
  EXPECT_EQ(shuffled, first_threads(Order::kShuffle, 1));
  EXPECT_NE(shuffled, first_threads(Order::kShuffle, 2));
  EXPECT_GT(*std::max_element(shuffled.begin(), shuffled.end()), 0);
}

__global__ void number_blocks(int* out, int* next) {
  if (threadIdx.x == 0) out[blockIdx.x] = atomicAdd(next, 1);
}

TEST_F(OrderTest, BlockOrderIsSeparate) {
  emulator::options().workers = 1;
  constexpr int kBlocks = 30;
  for (const Order order : {Order::kForward, Order::kReverse, Order::kShuffle}) {
    emulator::options().block_order = order;
    DeviceArray<int> out(std::vector<int>(kBlocks, -1));
    DeviceArray<int> next(1);
    ASSERT_EQ(moe::launch(number_blocks, kBlocks, 32, 0, nullptr, out.get(), next.get()),
              cudaSuccess);
    std::vector<int> numbers = out.host();
    EXPECT_EQ(numbers[0] == 0, order == Order::kForward);
    EXPECT_EQ(numbers[0] == kBlocks - 1, order == Order::kReverse);
    std::sort(numbers.begin(), numbers.end());
    for (int i = 0; i < kBlocks; ++i) EXPECT_EQ(numbers[static_cast<std::size_t>(i)], i);
  }
}

#ifndef EMULATOR_ASAN
__global__ void unwritten(float* out) {
  __shared__ float values[64];
  if (threadIdx.x > 5) values[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = values[threadIdx.x];
}

TEST_F(OrderTest, SharedMemoryStartsAsNan) {
  DeviceArray<float> out(64);
  for (const bool poison : {true, false, true}) {
    emulator::options().poison = poison;
    ASSERT_EQ(moe::launch(unwritten, 1, 64, 0, nullptr, out.get()), cudaSuccess);
    EXPECT_EQ(out.host()[6], 1);
    EXPECT_TRUE(std::isnan(out.host()[0]));  // poisoned once, untouched since
  }
}
#endif

__global__ void dynamic_unwritten(float* out) {
  out[threadIdx.x] = moe::dynamic_shared<float>()[threadIdx.x];
  moe::dynamic_shared<float>()[threadIdx.x] = 1;
}

TEST_F(OrderTest, DynamicSharedMemoryStartsAsNan) {
  DeviceArray<float> out(32);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(moe::launch(dynamic_unwritten, 4, 32, 128, nullptr, out.get()), cudaSuccess);
    EXPECT_TRUE(std::isnan(out.host()[31]));
  }
}

__global__ void wait_for_previous(int* done) {
  if (threadIdx.x == 0) {
    while (blockIdx.x > 0 && atomicAdd(&done[blockIdx.x - 1], 0) == 0) __nanosleep(100);
    atomicExch(&done[blockIdx.x], 1);
  }
  __syncthreads();
}

TEST_F(OrderTest, BlocksMayWaitForEarlierOnes) {
  for (const int workers : {1, 2, 3}) {
    emulator::options().workers = workers;
    DeviceArray<int> done(50);
    ASSERT_EQ(moe::launch(wait_for_previous, 50, 64, 0, nullptr, done.get()), cudaSuccess);
    EXPECT_EQ(done.host(), std::vector<int>(50, 1));
  }
}

}  // namespace
