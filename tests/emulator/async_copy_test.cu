// cp.async: bytes arrive at the wait of a committed group and not before.
#include "emulator_test.h"

#include <drills/ptx.h>

namespace {

using AsyncCopyTest = EmulatorTest;

// What thread 0 reads at each step: issued, committed, one group waited for, both waited for.
__global__ void two_groups(float* seen, const float* from) {
  auto* shared = moe::dynamic_shared<float>();
  moe::cp_async16(shared, from);
  moe::cp_async_commit();
  moe::cp_async16(shared + 4, from + 4);
  seen[0] = shared[0];
  moe::cp_async_commit();
  seen[1] = shared[0];
  moe::cp_async_wait<1>();
  seen[2] = shared[0];
  seen[3] = shared[4];
  moe::cp_async_wait<0>();
  seen[4] = shared[4];
}

TEST_F(AsyncCopyTest, BytesArriveAtTheWait) {
  DeviceArray<float> from(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  DeviceArray<float> seen(5);
  ASSERT_EQ(
      moe::launch(two_groups, 1, 1, 32, nullptr, seen.get(), static_cast<const float*>(from.get())),
      cudaSuccess);
  const std::vector<float> values = seen.host();
  EXPECT_NE(values[0], values[0]) << "garbage until the wait";
  EXPECT_NE(values[1], values[1]);
  EXPECT_EQ(values[2], 1);
  EXPECT_NE(values[3], values[3]) << "the newest group may stay under way";
  EXPECT_EQ(values[4], 5);
}

__global__ void uncommitted(float* seen, const float* from) {
  auto* shared = moe::dynamic_shared<float>();
  moe::cp_async16(shared, from);
  moe::cp_async_wait<0>();
  seen[0] = shared[0];
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  seen[1] = shared[0];
}

TEST_F(AsyncCopyTest, OnlyCommittedGroupsComplete) {
  DeviceArray<float> from(std::vector<float>{1, 2, 3, 4});
  DeviceArray<float> seen(2);
  ASSERT_EQ(moe::launch(uncommitted, 1, 1, 16, nullptr, seen.get(),
                        static_cast<const float*>(from.get())),
            cudaSuccess);
  EXPECT_NE(seen.host()[0], seen.host()[0]);
  EXPECT_EQ(seen.host()[1], 1);
}

__global__ void zero_fill(float* seen) {
  __shared__ __align__(16) float shared[4];
  shared[2] = 7;
  moe::cp_async16(shared, nullptr, false);
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  for (int i = 0; i < 4; ++i) seen[i] = shared[i];
}

TEST_F(AsyncCopyTest, InvalidCopyFillsWithZeros) {
  DeviceArray<float> seen(std::vector<float>(4, 3.0f));
  ASSERT_EQ(moe::launch(zero_fill, 1, 1, 0, nullptr, seen.get()), cudaSuccess);
  EXPECT_EQ(seen.host(), std::vector<float>(4, 0.0f));
}

// More copies than the ring holds, in many groups.
__global__ void many(int* out, const int4* from, int count) {
  auto* shared = moe::dynamic_shared<int4>();
  for (int i = 0; i < count; ++i) {
    moe::cp_async16(&shared[i], &from[i]);
    if (i % 3 == 0) moe::cp_async_commit();
  }
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  for (int i = 0; i < count; ++i) out[i] = shared[i].x + shared[i].w;
}

TEST_F(AsyncCopyTest, TakesAnyNumberOfCopies) {
  constexpr int kCount = 1000;
  std::vector<int4> values;
  for (int i = 0; i < kCount; ++i) values.push_back({i, 0, 0, i});
  DeviceArray<int4> from(values);
  DeviceArray<int> out(kCount);
  ASSERT_EQ(moe::launch(many, 1, 1, kCount * sizeof(int4), nullptr, out.get(),
                        static_cast<const int4*>(from.get()), kCount),
            cudaSuccess);
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(out.host()[static_cast<std::size_t>(i)], 2 * i);
}

const std::string kCopy = EMULATOR_TEST_LINE(5);

__global__ void never_waits(const float* from) {
  auto* shared = moe::dynamic_shared<float>();
  if (threadIdx.x != 5) return;
  moe::cp_async16(shared, from);
  moe::cp_async_commit();
}

TEST_F(AsyncCopyTest, ReturningWithCopiesUnderWayIsAFault) {
  DeviceArray<float> from(4);
  EXPECT_EQ(moe::launch(never_waits, 1, 32, 16, nullptr, static_cast<const float*>(from.get())),
            cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"missing wait: a thread returned with 1 cp.async copies",
                              "in block (0,0,0) thread (5,0,0) at ", kCopy}));
}

__global__ void empty_groups() {
  moe::cp_async_commit();
  moe::cp_async_commit();
}

TEST_F(AsyncCopyTest, EmptyGroupsNeedNoWait) {
  EXPECT_EQ(moe::launch(empty_groups, 1, 32, 0, nullptr), cudaSuccess);
}

__global__ void offset_copy(const char* from, int to_offset, int from_offset) {
  moe::cp_async16(moe::dynamic_shared() + to_offset, from + from_offset);
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
}

TEST_F(AsyncCopyTest, BothSidesAreAligned) {
  DeviceArray<char> from(64);
  const char* start = from.get();
  EXPECT_EQ(moe::launch(offset_copy, 1, 1, 64, nullptr, start, 16, 16), cudaSuccess);
  EXPECT_EQ(moe::launch(offset_copy, 1, 1, 64, nullptr, start, 8, 16), cudaErrorMisalignedAddress);
  EXPECT_TRUE(holds(fault(), {"misaligned: cp.async destination"}));
  emulator::clear_fault();
  EXPECT_EQ(moe::launch(offset_copy, 1, 1, 64, nullptr, start, 16, 4), cudaErrorMisalignedAddress);
  EXPECT_TRUE(holds(fault(), {"misaligned: cp.async source"}));
}

#ifndef EMULATOR_ASAN  // shared variables have no known home there
__global__ void copy_to_global(float* to, const float* from) {
  moe::cp_async16(to, from);
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
}

TEST_F(AsyncCopyTest, DestinationIsSharedMemory) {
  DeviceArray<float> memory(8);
  EXPECT_EQ(moe::launch(copy_to_global, 1, 1, 64, nullptr, memory.get(),
                        static_cast<const float*>(memory.get() + 4)),
            cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"out of bounds: the destination of cp.async"}));
}
#endif

}  // namespace
