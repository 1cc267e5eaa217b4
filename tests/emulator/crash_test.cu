// Faults that end the process: the report that is left behind.
#include "emulator_test.h"

#include <drills/ptx.h>

#include <csignal>

#include <unistd.h>

namespace {

class CrashTest : public EmulatorTest {
 protected:
  // A test that dies runs in a process of its own, which has no OS threads yet.
  CrashTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

#ifndef EMULATOR_ASAN  // its own report comes first there

__global__ void store(int* address, int thread) {
  if (static_cast<int>(threadIdx.x) == thread) *address = 1;
}

__global__ void divide(int* out, int divisor) {
  out[0] = (out[0] + 7) / divisor;
}

__device__ int endless(int depth) {
  volatile int frame[100];
  frame[depth % 100] = depth;
  return depth < 0 ? 0 : endless(depth + 1) + frame[depth % 100];
}

__global__ void recursion(int* out) {
  out[0] = endless(0);
}

const std::string kCopy = EMULATOR_TEST_LINE(3);

__global__ void copy_from(const int* address) {
  moe::cp_async16(moe::dynamic_shared(), address);
}

TEST_F(CrashTest, WildPointerNamesTheThread) {
  auto* wild = reinterpret_cast<int*>(0x10);
  EXPECT_EXIT((void)moe::launch(store, 1, 64, 0, nullptr, wild, 33),
              testing::KilledBySignal(SIGSEGV),
              "memory fault: address 0x10\n  in block \\(0,0,0\\) thread \\(33,0,0\\)\n  pc 0x");
}

#ifdef __x86_64__  // aarch64, like a GPU, gives a number and goes on

TEST_F(CrashTest, DivisionByZeroIsArithmetic) {
  DeviceArray<int> out(1);
  EXPECT_EXIT((void)moe::launch(divide, 1, 1, 0, nullptr, out.get(), 0),
              testing::KilledBySignal(SIGFPE), "arithmetic: .*\n  in block \\(0,0,0\\) thread");
}

#endif

TEST_F(CrashTest, StackOverflowIsRecognised) {
  DeviceArray<int> out(1);
  EXPECT_EXIT((void)moe::launch(recursion, 1, 32, 0, nullptr, out.get()),
              testing::KilledBySignal(SIGSEGV), "stack overflow: .*65536 bytes\n  in block");
}

TEST_F(CrashTest, CopySourceNamesTheLineOfItsIssue) {
  const auto* wild = reinterpret_cast<const int*>(0x1000);
  EXPECT_EXIT((void)moe::launch(copy_from, 1, 1, 64, nullptr, wild),
              testing::KilledBySignal(SIGSEGV), "memory fault: .*\n.* at .*" + kCopy);
}

TEST_F(CrashTest, SignalsOutsideKernelsKeepTheirMeaning) {
  DeviceArray<int> out(1);
  EXPECT_EXIT(
      {
        (void)moe::launch(divide, 1, 1, 0, nullptr, out.get(), 1);
        raise(SIGSEGV);
      },
      testing::KilledBySignal(SIGSEGV), "^$");
}

#endif

__global__ void spin(volatile int* flag) {
  while (*flag == 0) {
  }
}

__global__ void wait_for_nobody(int* flag) {
  if (threadIdx.x == 7) {
    while (atomicAdd(flag, 0) == 0) __nanosleep(100);
  }
  __syncthreads();
}

TEST_F(CrashTest, LoopWithoutEndIsAHang) {
  DeviceArray<int> flag(1);
  EXPECT_EXIT(
      {
        emulator::options().hang_seconds = 0.3;
        (void)moe::launch(spin, 1, 32, 0, nullptr, static_cast<volatile int*>(flag.get()));
      },
      testing::ExitedWithCode(86),
      "hang: .*0.3 s.*\n  in block \\(0,0,0\\) thread \\([0-9]+,0,0\\)\n  pc 0x[0-9a-f]+\n"
      "  32 threads, first thread \\(0,0,0\\): can run");
}

TEST_F(CrashTest, WaitingForNobodyIsAHang) {
  DeviceArray<int> flag(1);
  EXPECT_EXIT(
      {
        emulator::options().hang_seconds = 0.3;
        (void)moe::launch(wait_for_nobody, 1, 32, 0, nullptr, flag.get());
      },
      testing::ExitedWithCode(86), "31 threads, first thread .*: wait at __syncthreads");
}

__global__ void compute(float* out, int steps) {
  float value = 1;
  for (int i = 0; i < steps; ++i) value = value * 1.0001f + 0.1f;
  out[threadIdx.x] = value;
}

TEST_F(CrashTest, WorkWithoutBarriersIsNoHang) {
  emulator::options().hang_seconds = 0.5;
  DeviceArray<float> out(256);
  EXPECT_EQ(moe::launch(compute, 1, 256, 0, nullptr, out.get(), 2000000), cudaSuccess);
}

TEST_F(CrashTest, ChildAfterForkHasADeviceOfItsOwn) {
  testing::FLAGS_gtest_death_test_style = "fast";
  DeviceArray<float> out(32);
  ASSERT_EQ(moe::launch(compute, 1, 32, 0, nullptr, out.get(), 1), cudaSuccess);
  EXPECT_EXIT(_exit(moe::launch(compute, 1, 32, 0, nullptr, out.get(), 1)),
              testing::ExitedWithCode(0), "");
}

}  // namespace
