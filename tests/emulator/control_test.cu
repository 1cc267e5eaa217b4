// Regions left to do, and blanks in host and device code.
#include "emulator_test.h"

namespace {

using ControlTest = EmulatorTest;

__host__ __device__ int unfinished(int value) {
  DRILL_TODO("m0.shared");
  return value;
}

__global__ void with_blank(int* out) {
  DRILL_TODO("m0.kernel");
  out[threadIdx.x] = unfinished(1);
}

TEST_F(ControlTest, BlanksAreNotedOnceAndFallThrough) {
  DeviceArray<int> out(128);
  EXPECT_EQ(emulator::todo_count(), 0);
  EXPECT_EQ(unfinished(3), 3);
  ASSERT_EQ(moe::launch(with_blank, 8, 128, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), std::vector<int>(128, 1));
  ASSERT_EQ(emulator::todo_count(), 2);
  EXPECT_STREQ(emulator::todo(0), "m0.shared");
  EXPECT_STREQ(emulator::todo(1), "m0.kernel");
  emulator::clear_todo();
  EXPECT_EQ(emulator::todo_count(), 0);
  unfinished(1);
  EXPECT_EQ(emulator::todo_count(), 1);
}

__global__ void worker_of_block(unsigned long* out) {
  const int* address = nullptr;
  __shared__ int shared;
  address = &shared;
  out[blockIdx.x] = reinterpret_cast<unsigned long>(address);
  const long long start = clock64();
  while (clock64() - start < 200000) __nanosleep(10);
}

TEST_F(ControlTest, WorkersCanChangeBetweenLaunches) {
  for (const int workers : {1, 3, 1, 2}) {
    emulator::options().workers = workers;
    DeviceArray<unsigned long> out(24);
    ASSERT_EQ(moe::launch(worker_of_block, 24, 1, 0, nullptr, out.get()), cudaSuccess);
    std::vector<unsigned long> seen;
    for (const unsigned long address : out.host()) {
      bool known = false;
      for (const unsigned long other : seen) known = known || other == address;
      if (!known) seen.push_back(address);
    }
    EXPECT_LE(seen.size(), static_cast<std::size_t>(workers));
  }
}

__device__ int deep(int depth) {
  volatile char frame[1000];
  frame[0] = 1;
  if (depth > 0) return deep(depth - 1) + frame[0];
  return frame[0];
}

__global__ void recursion(int* out, int depth) {
  out[threadIdx.x] = deep(depth);
}

TEST_F(ControlTest, StacksCanGrow) {
  emulator::options().stack_bytes = 1 << 20;
  DeviceArray<int> out(64);
  ASSERT_EQ(moe::launch(recursion, 1, 64, 0, nullptr, out.get(), 500), cudaSuccess);
  EXPECT_EQ(out.host()[63], 501);
}

}  // namespace
