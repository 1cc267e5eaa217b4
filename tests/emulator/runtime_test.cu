// The host side of the runtime: memory, properties, events, errors.
#include "emulator_test.h"

#include <cstring>
#include <utility>

#include "../../drills/capability.h"

namespace {

using RuntimeTest = EmulatorTest;

TEST_F(RuntimeTest, MemoryIsAlignedAndFilled) {
  unsigned char* memory = nullptr;
  for (const std::size_t bytes : {1u, 255u, 256u, 100000u}) {
    ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 256, 0u);
    EXPECT_EQ(memory[0], 0xff);
    EXPECT_EQ(memory[bytes - 1], 0xff);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
}

TEST_F(RuntimeTest, HugeBuffersCostNothingUntouched) {
  unsigned char* memory = nullptr;
  const std::size_t bytes = std::size_t{20} << 30;
  ASSERT_EQ(cudaMalloc(&memory, bytes), cudaSuccess);
  memory[bytes - 1] = 1;
  EXPECT_EQ(cudaMemset(memory + (std::size_t{9} << 30), 3, 100), cudaSuccess);
  EXPECT_EQ(memory[(std::size_t{9} << 30) + 99], 3);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

TEST_F(RuntimeTest, MemoryRunsOut) {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  ASSERT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  EXPECT_LE(free_bytes, total_bytes);
  void* memory = &memory;
  EXPECT_EQ(cudaMalloc(&memory, total_bytes + 1), cudaErrorMemoryAllocation);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(RuntimeTest, RequestsForMemoryAreCounted) {
  emulator::forget_allocations();
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 100), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  EXPECT_EQ(cudaMallocAsync(&memory, 10, nullptr), cudaSuccess);
  EXPECT_EQ(cudaFreeAsync(memory, nullptr), cudaSuccess);
  EXPECT_EQ(cudaMallocHost(&memory, 1), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(memory), cudaSuccess);
  EXPECT_NE(cudaMalloc(&memory, std::size_t{1} << 50), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaErrorMemoryAllocation);
  EXPECT_EQ(emulator::allocations().calls, 4u) << "what is not granted was asked for";
  EXPECT_EQ(emulator::allocations().bytes, 111 + (std::size_t{1} << 50));
  emulator::forget_allocations();
  EXPECT_EQ(emulator::allocations().calls, 0u);
}

TEST_F(RuntimeTest, CopiesAndFillsStayInsideAllocations) {
  DeviceArray<int> memory(4);
  int host[8] = {};
  EXPECT_EQ(cudaMemcpy(memory.get(), host, 17, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(host, memory.get() + 2, 9, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(memory.get() + 3, 0, 8), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(memory.get() + 3, 0, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory.get() + 1), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(nullptr, 0, 4), cudaErrorInvalidValue);
}

TEST_F(RuntimeTest, ItCanSayThatItIsAnotherGpu) {
  EXPECT_EQ(moe::refuse_unless_capability_9_0(), nullptr);
  for (const auto& [major, minor] : {std::pair(8, 9), std::pair(9, 1), std::pair(10, 0)}) {
    emulator::options().capability_major = major;
    emulator::options().capability_minor = minor;
    cudaDeviceProp properties = {};
    ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
    EXPECT_EQ(properties.major, major);
    EXPECT_EQ(properties.minor, minor);
    EXPECT_STREQ(moe::refuse_unless_capability_9_0(),
                 "the device must have compute capability 9.0");
  }
}

TEST_F(RuntimeTest, PropertiesDescribeASmallHopper) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "emulator");
  EXPECT_EQ(properties.major * 10 + properties.minor, 90);
  EXPECT_EQ(properties.multiProcessorCount, 4);
  int value = 0;
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0), cudaSuccess);
  EXPECT_EQ(value, 4);
  ASSERT_EQ(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
            cudaSuccess);
  EXPECT_EQ(value, 227 * 1024);
}

__global__ void kernel(int) {}

TEST_F(RuntimeTest, FunctionAttributesHaveLimits) {
  const cudaFuncAttribute shared = cudaFuncAttributeMaxDynamicSharedMemorySize;
  EXPECT_EQ(cudaFuncSetAttribute(kernel, shared, 227 * 1024), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(kernel, shared, 227 * 1024 + 1), cudaErrorInvalidValue);
  int blocks = 0;
  EXPECT_EQ(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 128, 0), cudaSuccess);
  EXPECT_EQ(blocks, 1);
}

TEST_F(RuntimeTest, EventsMeasureTime) {
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  (void)cudaGetLastError();
  EXPECT_EQ(cudaEventRecord(start), cudaSuccess);
  EXPECT_EQ(moe::launch(kernel, 4, 32, 0, nullptr, 1), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(end), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(end), cudaSuccess);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GT(milliseconds, 0.0f);
  EXPECT_LT(milliseconds, 10000.0f);
  EXPECT_EQ(cudaStreamWaitEvent(nullptr, end), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(start), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST_F(RuntimeTest, StreamsAreKnownUntilDestroyed) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(moe::launch(kernel, 1, 1, 0, stream, 1), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
}

TEST_F(RuntimeTest, ErrorsHaveNames) {
  EXPECT_STREQ(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  EXPECT_STREQ(cudaGetErrorString(cudaSuccess), "no error");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorLaunchFailure), "cudaErrorLaunchFailure");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorLaunchFailure), "unspecified launch failure");
  EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(998)), "unrecognized error code");
}

__global__ void bits(unsigned* out) {
  out[0] = __brev(1u);
  out[1] = static_cast<unsigned>(__clz(0) * 100 + __clz(1));
  out[2] = static_cast<unsigned>(__ffs(8) + __popc(0xffu));
  out[3] = __byte_perm(0x33221100u, 0x77665544u, 0x7410u);
  out[4] = __funnelshift_l(0x80000000u, 1u, 1u);
  out[5] = __float_as_uint(1.0f);
  out[6] = static_cast<unsigned>(__float2int_rn(2.5f) + __float2int_rn(3.5f) * 10);
  out[7] = __umulhi(0x80000000u, 6u);
  out[8] = static_cast<unsigned>(min(3, -1) + max(2, 7) + static_cast<int>(max(1.5f, 2.0f)));
  out[9] = static_cast<unsigned>(__float2int_rz(1e20f) == 0x7fffffff &&
                                 __float2int_rz(__uint_as_float(0x7fc00000u)) == 0);
}

TEST_F(RuntimeTest, BitFunctions) {
  DeviceArray<unsigned> out(10);
  ASSERT_EQ(moe::launch(bits, 1, 1, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), (std::vector<unsigned>{0x80000000u, 3231, 12, 0x77441100u, 3, 0x3f800000u,
                                               42, 3, 8, 1}));
}

}  // namespace
