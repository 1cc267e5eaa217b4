// Launch configurations, arguments, and constant memory.
#include "emulator_test.h"

namespace {

using LaunchTest = EmulatorTest;

__global__ void empty() {}

TEST_F(LaunchTest, RefusesWhatTheHardwareRefuses) {
  struct Case {
    dim3 grid;
    dim3 block;
    std::size_t smem_bytes;
    cudaError_t error;
    const char* text;
  };
  const Case cases[] = {
      {0, 32, 0, cudaErrorInvalidConfiguration, "launch: the grid (0,1,1) is empty"},
      {dim3(1, 1, 0), 32, 0, cudaErrorInvalidConfiguration, "is empty"},
      {1, 0, 0, cudaErrorInvalidConfiguration, "launch: the block (0,1,1) is empty"},
      {1, 1025, 0, cudaErrorInvalidConfiguration, "1024 threads"},
      {1, dim3(32, 33), 0, cudaErrorInvalidConfiguration, "1024 threads"},
      {1, dim3(1, 1, 65), 0, cudaErrorInvalidConfiguration, "(1024,1024,64)"},
      {dim3(1, 65536), 1, 0, cudaErrorInvalidConfiguration, "the grid (1,65536,1)"},
      {dim3(1, 1, 65536), 1, 0, cudaErrorInvalidConfiguration, "the grid (1,1,65536)"},
      {0x80000000u, 1, 0, cudaErrorInvalidConfiguration, "the grid (2147483648,1,1)"},
      {1, 1, 227 * 1024 + 1, cudaErrorInvalidValue, "the limit is 232448"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(moe::launch(empty, c.grid, c.block, c.smem_bytes, nullptr), c.error) << c.text;
    EXPECT_TRUE(holds(fault(), {"launch: ", c.text}));
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess) << "such errors don't stick";
    EXPECT_EQ(moe::launch(empty, 1, 1, 0, nullptr), cudaSuccess);
    EXPECT_EQ(fault(), "");
  }
}

__global__ void use_all_shared(int* out) {
  auto* bytes = moe::dynamic_shared();
  for (int i = 0; i < 227 * 1024; ++i) bytes[i] = static_cast<unsigned char>(i);
  out[0] = bytes[227 * 1024 - 1];
  out[1] = static_cast<int>(reinterpret_cast<std::uintptr_t>(bytes) % 1024);
}

TEST_F(LaunchTest, LargestBlockAndSharedMemoryWork) {
  EXPECT_EQ(moe::launch(empty, 1, 1024, 0, nullptr), cudaSuccess);
  EXPECT_EQ(moe::launch(empty, 1, dim3(4, 4, 64), 0, nullptr), cudaSuccess);
  DeviceArray<int> out(2);
  EXPECT_EQ(moe::launch(use_all_shared, 1, 1, 227 * 1024, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), (std::vector<int>{255, 0}));
}

struct Counted {
  static inline int copies = 0;
  int value = 0;

  explicit Counted(int v) : value(v) {}
  Counted(const Counted& other) : value(other.value) { __atomic_add_fetch(&copies, 1, 5); }
  Counted& operator=(const Counted&) = default;
};

__global__ void changes_parameter(Counted counted, int* out) {
  ++counted.value;
  out[threadIdx.x] = counted.value;
}

TEST_F(LaunchTest, EachThreadHasItsOwnParameters) {
  DeviceArray<int> out(64);
  const Counted counted(5);
  ASSERT_EQ(moe::launch(changes_parameter, 1, 64, 0, nullptr, counted, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), std::vector<int>(64, 6));
  EXPECT_GE(Counted::copies, 64);
}

template <int kFactor>
__global__ void scale(float* values, double offset) {
  values[threadIdx.x] = static_cast<float>(kFactor * values[threadIdx.x] + offset);
}

TEST_F(LaunchTest, ArgumentsConvertToTheParameters) {
  DeviceArray<float> values(std::vector<float>{1, 2});
  ASSERT_EQ(moe::launch(scale<3>, 1, 2, 0, nullptr, values.get(), 1), cudaSuccess);
  EXPECT_EQ(values.host(), (std::vector<float>{4, 7}));
}

__constant__ int g_table[4] = {1, 2, 3, 4};

__global__ void read_table(int* out) {
  out[threadIdx.x] = g_table[threadIdx.x];
}

TEST_F(LaunchTest, SymbolsAreCopied) {
  DeviceArray<int> out(4);
  const int changed[2] = {7, 8};
  ASSERT_EQ(cudaMemcpyToSymbol(g_table, changed, sizeof changed, sizeof(int)), cudaSuccess);
  ASSERT_EQ(moe::launch(read_table, 1, 4, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), (std::vector<int>{1, 7, 8, 4}));
  int back[4] = {};
  ASSERT_EQ(cudaMemcpyFromSymbol(back, g_table, sizeof back), cudaSuccess);
  EXPECT_EQ(back[2], 8);
  EXPECT_EQ(cudaMemcpyFromSymbol(back, g_table, sizeof back, 4), cudaErrorInvalidValue);
}

TEST_F(LaunchTest, UnknownStreamIsRefused) {
  int not_a_stream = 0;
  EXPECT_EQ(moe::launch(empty, 1, 1, 0, reinterpret_cast<cudaStream_t>(&not_a_stream)),
            cudaErrorInvalidResourceHandle);
}

__global__ void starts_another() {
  (void)moe::launch(empty, 1, 1, 0, nullptr);
}

TEST_F(LaunchTest, KernelsDontStartKernels) {
  EXPECT_EQ(moe::launch(starts_another, 1, 1, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_EQ(fault_kind(), "launch");
}

}  // namespace
