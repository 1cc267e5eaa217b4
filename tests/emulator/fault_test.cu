// Faults of single threads that end the launch and leave the process alive.
#undef NDEBUG

#include "emulator_test.h"

#include <drills/ptx.h>

#include <cassert>
#include <stdexcept>

namespace {

using FaultTest = EmulatorTest;

const std::string kAssert = EMULATOR_TEST_LINE(3);

__global__ void asserting(int limit) {
  assert(static_cast<int>(threadIdx.x) < limit);
}

TEST_F(FaultTest, AssertNamesThreadAndLine) {
  EXPECT_EQ(moe::launch(asserting, 3, 128, 0, nullptr, 77), cudaErrorAssert);
  EXPECT_TRUE(
      holds(fault(), {"assert: ", "threadIdx.x) < limit is false in ", kAssert, "\n  in block ("}));
}

__global__ void throwing() {
  if (threadIdx.x == 3) throw std::runtime_error("thrown on purpose");
}

TEST_F(FaultTest, ExceptionsEndTheLaunch) {
  EXPECT_EQ(moe::launch(throwing, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"exception: thrown in a kernel: thrown on purpose",
                              "in block (0,0,0) thread (3,0,0)"}));
}

const std::string kTrap = EMULATOR_TEST_LINE(3);

__global__ void trapping() {
  __trap();
}

TEST_F(FaultTest, TrapEndsTheLaunch) {
  EXPECT_EQ(moe::launch(trapping, 1, 1, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"exception: the kernel called __trap()", kTrap}));
}

const std::string kLoad = EMULATOR_TEST_LINE(3);

__global__ void reads_misaligned(const char* bytes, float4* out) {
  out[0] = __ldg(reinterpret_cast<const float4*>(bytes + 4));
}

TEST_F(FaultTest, CachedLoadsCheckAlignment) {
  DeviceArray<char> bytes(64);
  DeviceArray<float4> out(1);
  EXPECT_EQ(moe::launch(reads_misaligned, 1, 1, 0, nullptr, bytes.get(), out.get()),
            cudaErrorMisalignedAddress);
  EXPECT_TRUE(holds(fault(), {"misaligned: __ldg: address ", "not a multiple of 16", kLoad}));
}

__global__ void ldmatrix_misaligned() {
  uint32_t r[4];
  moe::ldmatrix_x4(r, moe::dynamic_shared() + 8);
}

__global__ void ldmatrix_outside(const void* global) {
  uint32_t r[1];
  moe::ldmatrix_x1(r, global);
}

TEST_F(FaultTest, LdmatrixChecksItsRows) {
  EXPECT_EQ(moe::launch(ldmatrix_misaligned, 1, 32, 1024, nullptr), cudaErrorMisalignedAddress);
  EXPECT_EQ(fault_kind(), "misaligned");
  emulator::clear_fault();
  DeviceArray<float4> global(1);
  const cudaError_t error =
      moe::launch(ldmatrix_outside, 1, 32, 1024, nullptr, static_cast<const void*>(global.get()));
#ifndef EMULATOR_ASAN  // shared variables have no known home there
  EXPECT_EQ(error, cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"out of bounds: ldmatrix.x1: the row is not in shared memory"}));
#else
  EXPECT_EQ(error, cudaSuccess);
#endif
}

#ifndef EMULATOR_ASAN  // it ends the process instead
__global__ void overruns(int index) {
  moe::dynamic_shared<int>()[index] = 1;
}

TEST_F(FaultTest, WritesBehindDynamicSharedMemoryAreFound) {
  EXPECT_EQ(moe::launch(overruns, 2, 32, 400, nullptr, 99), cudaSuccess);
  EXPECT_EQ(moe::launch(overruns, 2, 32, 400, nullptr, 101), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"out of bounds: the block wrote byte 404 of dynamic shared memory; "
                              "the launch asked for 400",
                              "in block ("}));
}
#endif

__global__ void bad_width() {
  (void)__shfl_sync(0xffffffffu, 1, 0, 5);
}

TEST_F(FaultTest, ShuffleWidthIsAPowerOfTwo) {
  EXPECT_EQ(moe::launch(bad_width, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"out of bounds: __shfl_sync: width 5"}));
}

__global__ void empty() {}

TEST_F(FaultTest, ErrorsStick) {
  DeviceArray<int> memory(1);
  EXPECT_EQ(moe::launch(trapping, 1, 1, 0, nullptr), cudaErrorLaunchFailure);
  const std::string first = fault();
  int* pointer = nullptr;
  EXPECT_EQ(cudaMalloc(&pointer, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaMemset(memory.get(), 0, 4), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
  EXPECT_EQ(moe::launch(empty, 1, 1, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_EQ(fault(), first);
  emulator::clear_fault();
  EXPECT_EQ(moe::launch(empty, 1, 1, 0, nullptr), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(FaultTest, DeviceWorksAfterEachKindOfFault) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(moe::launch(asserting, 5, 128, 0, nullptr, i), cudaErrorAssert);
    emulator::clear_fault();
    EXPECT_EQ(moe::launch(throwing, 5, 128, 0, nullptr), cudaErrorLaunchFailure);
    emulator::clear_fault();
    EXPECT_EQ(moe::launch(asserting, 5, 128, 0, nullptr, 128), cudaSuccess);
  }
}

}  // namespace
