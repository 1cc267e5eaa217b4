// The cost model on patterns whose price is known, as kernels that the traced emulator runs.
#include "emulator_test.h"

#include <drills/ptx.h>

#include <memory>
#include <vector>

#include "block.h"
#include "cost_watch.h"

namespace {

using emulator::CostWatch;
using emulator::Space;

class CostTest : public EmulatorTest {
 protected:
  ~CostTest() override { emulator::observe(nullptr); }

  // The lines of the only kernel that `run` launches.
  template <class Run>
  std::vector<CostWatch::Line> lines_of(Run run, std::size_t cache_bytes = 1 << 20) {
    CostWatch watch("", cache_bytes);
    emulator::observe(&watch);
    run();
    emulator::observe(nullptr);
    EXPECT_EQ(fault(), "");
    EXPECT_EQ(watch.kernels().size(), 1u);
    kernel_ = watch.kernels().front();
    return kernel_.lines;
  }

  CostWatch::Line line(Space space, bool writes) const {
    CostWatch::Line found;
    for (const CostWatch::Line& one : kernel_.lines) {
      if (one.space == space && one.writes == writes) found = one;
    }
    return found;
  }

  CostWatch::Kernel kernel_;
};

// Each lane reads one T, `stride` elements behind the lane before; 0 is a broadcast.
template <class T>
__global__ void strided(T* to, const T* from, int stride) {
  to[threadIdx.x] = from[threadIdx.x * static_cast<unsigned>(stride)];
}

struct GlobalPattern {
  int stride;
  std::uint64_t sectors;
  std::uint64_t least;
};

TEST_F(CostTest, SectorsOfFourByteLoads) {
  for (const GlobalPattern pattern :
       {GlobalPattern{1, 4, 4}, {2, 8, 4}, {8, 32, 4}, {32, 32, 4}, {0, 1, 1}}) {
    DeviceArray<float> from(32 * 32);
    DeviceArray<float> to(32);
    lines_of([&] {
      EXPECT_EQ(moe::launch(strided<float>, 1, 32, 0, nullptr, to.get(),
                            static_cast<const float*>(from.get()), pattern.stride),
                cudaSuccess);
    });
    const CostWatch::Line reads = line(Space::kGlobal, false);
    EXPECT_EQ(reads.requests, 1u) << pattern.stride;
    EXPECT_EQ(reads.units, pattern.sectors) << pattern.stride;
    EXPECT_EQ(reads.least, pattern.least) << pattern.stride;
    EXPECT_EQ(line(Space::kGlobal, true).units, 4u);
  }
}

TEST_F(CostTest, SectorsOfSixteenByteLoads) {
  for (const GlobalPattern pattern : {GlobalPattern{1, 16, 16}, {2, 32, 16}, {0, 1, 1}}) {
    DeviceArray<uint4> from(64);
    DeviceArray<uint4> to(32);
    lines_of([&] {
      EXPECT_EQ(moe::launch(strided<uint4>, 1, 32, 0, nullptr, to.get(),
                            static_cast<const uint4*>(from.get()), pattern.stride),
                cudaSuccess);
    });
    EXPECT_EQ(line(Space::kGlobal, false).requests, 1u);
    EXPECT_EQ(line(Space::kGlobal, false).units, pattern.sectors) << pattern.stride;
    EXPECT_EQ(line(Space::kGlobal, false).least, pattern.least) << pattern.stride;
  }
}

template <class T>
__global__ void in_shared(float* to, int stride) {
  auto* shared = moe::dynamic_shared<T>();
  T value = {};
  shared[threadIdx.x * static_cast<unsigned>(stride)] = value;
  to[threadIdx.x] = 0;
}

struct SharedPattern {
  int stride;
  std::uint64_t passes;
};

template <class T>
void launch_in_shared(int stride) {
  DeviceArray<float> to(32);
  EXPECT_EQ(moe::launch(in_shared<T>, 1, 32, 32 * 32 * sizeof(T), nullptr, to.get(), stride),
            cudaSuccess);
}

TEST_F(CostTest, BankPassesOfFourBytes) {
  for (const SharedPattern pattern :
       {SharedPattern{1, 1}, {2, 2}, {8, 8}, {32, 32}, {31, 1}, {0, 1}}) {
    lines_of([&] { launch_in_shared<float>(pattern.stride); });
    EXPECT_EQ(line(Space::kShared, true).units, pattern.passes) << pattern.stride;
    EXPECT_EQ(line(Space::kShared, true).least, 1u) << pattern.stride;
  }
}

TEST_F(CostTest, WiderOnesGoByHalvesAndQuarters) {
  for (const SharedPattern pattern : {SharedPattern{1, 2}, {2, 4}, {16, 32}}) {
    lines_of([&] { launch_in_shared<float2>(pattern.stride); });
    EXPECT_EQ(line(Space::kShared, true).units, pattern.passes) << pattern.stride;
    EXPECT_EQ(line(Space::kShared, true).least, 2u);
  }
  // Rows of 80 bytes, as m2's tiles have: no two of eight start in one bank.
  for (const SharedPattern pattern : {SharedPattern{1, 4}, {2, 8}, {5, 4}, {8, 32}}) {
    lines_of([&] { launch_in_shared<uint4>(pattern.stride); });
    EXPECT_EQ(line(Space::kShared, true).units, pattern.passes) << pattern.stride;
    EXPECT_EQ(line(Space::kShared, true).least, 4u);
  }
}

// Four lanes copy a row of 64 bytes.
__global__ void copy_rows(const uint4* from, int pitch) {
  auto* shared = moe::dynamic_shared<unsigned char>();
  const unsigned place = threadIdx.x / 4 * static_cast<unsigned>(pitch) + threadIdx.x % 4 * 16;
  moe::cp_async16(shared + place, from + threadIdx.x);
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
}

// Not by quarters: of two rows of 80 bytes parts lie in the same banks, of all eight no more than
// four words in any.
TEST_F(CostTest, CpAsyncWritesAsTheBytesCome) {
  for (const SharedPattern pattern : {SharedPattern{64, 4}, {80, 4}, {128, 8}, {256, 8}}) {
    lines_of([&] {
      DeviceArray<uint4> from(32);
      EXPECT_EQ(moe::launch(copy_rows, 1, 32, 8 * 256, nullptr, from.get(), pattern.stride),
                cudaSuccess);
    });
    EXPECT_EQ(line(Space::kShared, true).units, pattern.passes) << "pitch " << pattern.stride;
    EXPECT_EQ(line(Space::kShared, true).least, 4u);
  }
}

__global__ void load_matrices(std::uint32_t* to, int pitch) {
  auto* shared = moe::dynamic_shared<unsigned char>();
  std::uint32_t registers[4];
  moe::ldmatrix_x4(
      registers, shared + threadIdx.x % 16 * static_cast<unsigned>(pitch) + threadIdx.x / 16 * 16);
  to[threadIdx.x] = registers[0];
}

TEST_F(CostTest, LdmatrixGoesByMatrices) {
  for (const SharedPattern pattern : {SharedPattern{80, 4}, {64, 16}, {128, 32}, {144, 4}}) {
    lines_of([&] {
      DeviceArray<std::uint32_t> to(32);
      EXPECT_EQ(moe::launch(load_matrices, 1, 32, 16 * 144 + 64, nullptr, to.get(), pattern.stride),
                cudaSuccess);
    });
    EXPECT_EQ(line(Space::kShared, false).requests, 1u);
    EXPECT_EQ(line(Space::kShared, false).units, pattern.passes) << "pitch " << pattern.stride;
  }
}

// Lane i goes round i / 16 + 1 times.
__global__ void loops(float* to, const float* from) {
  float sum = 0;
  for (unsigned i = 0; i <= threadIdx.x / 16; ++i) sum += from[i * 32 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 8) sum += from[threadIdx.x];
  to[threadIdx.x] = sum;
}

TEST_F(CostTest, TheNthTurnsOfTheLanesAreOneRequest) {
  DeviceArray<float> from(64);
  DeviceArray<float> to(32);
  const std::vector<CostWatch::Line> lines = lines_of([&] {
    EXPECT_EQ(
        moe::launch(loops, 1, 32, 0, nullptr, to.get(), static_cast<const float*>(from.get())),
        cudaSuccess);
  });
  std::uint64_t requests = 0;
  std::uint64_t sectors = 0;
  for (const CostWatch::Line& one : lines) {
    if (one.writes) continue;
    requests += one.requests;
    sectors += one.units;
  }
  EXPECT_EQ(requests, 3u);
  EXPECT_EQ(sectors, 4u + 2u + 1u);
  EXPECT_EQ(kernel_.barriers, 1u);
  EXPECT_EQ(kernel_.blocks, 1u);
  EXPECT_EQ(kernel_.blocks_at_work, 1u);
}

TEST(CacheModelTest, DropsWhatWasUsedLongestAgo) {
  emulator::CacheModel cache(2 * emulator::kSectorBytes);
  for (const std::uintptr_t sector : {1, 2, 1, 3, 1, 2}) cache.read(sector);
  EXPECT_EQ(cache.bytes_read(), 4 * emulator::kSectorBytes) << "1, 2, 3 and 2 again";
  cache.write(5);
  cache.write(5);
  EXPECT_EQ(cache.bytes_written(), 0u);
  cache.flush();
  EXPECT_EQ(cache.bytes_written(), emulator::kSectorBytes);
}

}  // namespace
