// wgmma: what a kernel forgets between its tiles, its registers and the waits.
#include "emulator_test.h"

#include <drills/wgmma.h>

namespace {

using WgmmaTest = EmulatorTest;

// Steps of a kernel that multiplies tiles of ones, any of which may go wrong.
enum Step : int {
  kRight,
  kNoProxyFence,
  kNoWgmmaFence,
  kNoCommit,
  kNoWait,
  kEarlyRead,       // of the accumulators, before the wait
  kEarlyWrite,      // of the accumulators
  kEarlyOverwrite,  // of the tile
  kOtherDescriptor,
  kOneThreadLess,
  kNoSwizzle,
  kOutside,
  kTouchedUnfenced,  // accumulators changed between two chains without a fence
};

constexpr int kN = 16;
constexpr int kSharedBytes = 64 * 128 + kN * 128;

__global__ void ones(float* out, int step) {
  auto* tiles = moe::dynamic_shared<__nv_bfloat16>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSharedBytes / 2; i += 128) tiles[i] = __float2bfloat16(1.0f);
  if (step != kNoProxyFence) moe::fence_proxy_async();
  __syncthreads();
  if (step == kOneThreadLess && thread == 77) return;
  std::uint64_t a = moe::wgmma_descriptor(tiles);
  const std::uint64_t b = moe::wgmma_descriptor(tiles + 64 * 64);
  if (step == kOtherDescriptor && thread == 5) a += 2;
  if (step == kNoSwizzle) a &= ~(std::uint64_t{3} << 62);
  if (step == kOutside) a += 0x300;
  float d[kN / 2] = {};
  if (step != kNoWgmmaFence) moe::wgmma_fence();
  moe::wgmma_bf16(d, a, b, true);
  moe::wgmma_bf16(d, a + 2, b + 2, true);
  if (step != kNoCommit) moe::wgmma_commit();
  if (step == kEarlyRead) out[thread] = d[0];
  if (step == kEarlyWrite) d[1] = 3.0f;
  if (step == kEarlyOverwrite && thread == 0) tiles[5] = __float2bfloat16(7.0f);
  if (step == kNoWait) return;
  moe::wgmma_wait<0>();
  if (step == kTouchedUnfenced) {
    d[0] += 1.0f;
    moe::wgmma_bf16(d, a, b, true);
    moe::wgmma_commit();
    moe::wgmma_wait<0>();
  }
  if (step != kEarlyRead) out[thread] = d[3];
}

testing::AssertionResult fails(int step, const std::vector<std::string>& parts) {
  DeviceArray<float> out(128);
  if (moe::launch(ones, 1, 128, kSharedBytes, nullptr, out.get(), step) == cudaSuccess) {
    return testing::AssertionFailure() << "no fault";
  }
  const auto result = holds(emulator::fault(), parts);
  emulator::clear_fault();
  return result;
}

TEST_F(WgmmaTest, RightOneIsRightInEveryOrder) {
  for (const auto order :
       {emulator::Order::kForward, emulator::Order::kReverse, emulator::Order::kShuffle}) {
    emulator::options().order = order;
    DeviceArray<float> out(128);
    ASSERT_EQ(moe::launch(ones, 2, 128, kSharedBytes, nullptr, out.get(), int{kRight}), cudaSuccess)
        << fault();
    EXPECT_EQ(out.host(), std::vector<float>(128, 32.0f));
  }
}

TEST_F(WgmmaTest, MissingFencesAreNamed) {
  EXPECT_TRUE(fails(kNoProxyFence, {"missing fence: wgmma reads byte 0 of dynamic shared memory",
                                    "wgmma_test.cu:"}));
  EXPECT_TRUE(fails(kNoWgmmaFence, {"missing fence: wgmma without wgmma_fence()"}));
  EXPECT_TRUE(fails(kTouchedUnfenced, {"missing fence: wgmma without wgmma_fence()"}));
  emulator::options().proxy_fences = false;
  DeviceArray<float> out(128);
  EXPECT_EQ(moe::launch(ones, 1, 128, kSharedBytes, nullptr, out.get(), int{kNoProxyFence}),
            cudaSuccess);
}

TEST_F(WgmmaTest, MissingCommitAndWaitAreNamed) {
  EXPECT_TRUE(fails(kNoCommit, {"missing commit: wgmma_wait<0>()"}));
  EXPECT_TRUE(fails(kNoWait, {"missing wait: a thread returned with 2 wgmmas"}));
  EXPECT_TRUE(fails(kEarlyWrite, {"missing wait: the accumulators of a wgmma were written"}));
  EXPECT_TRUE(fails(kEarlyOverwrite, {"missing wait: a tile of a wgmma was overwritten"}));
}

TEST_F(WgmmaTest, AccumulatorsAreNanUntilTheWait) {
  DeviceArray<float> out(128);
  ASSERT_EQ(moe::launch(ones, 1, 128, kSharedBytes, nullptr, out.get(), int{kEarlyRead}),
            cudaSuccess);
  EXPECT_NE(out.host()[9], out.host()[9]);
}

TEST_F(WgmmaTest, TheWarpgroupActsAsOne) {
  EXPECT_TRUE(fails(kOtherDescriptor, {"divergence: the threads of a warpgroup give one wgmma "
                                       "different descriptors",
                                       "thread (5,0,0)"}));
  EXPECT_TRUE(fails(kOneThreadLess, {"deadlock",
                                     "127 threads, first thread (0,0,0): wait at "
                                     "wgmma_wait",
                                     "1 thread, first thread (77,0,0): returned"}));
  EXPECT_TRUE(fails(kNoSwizzle, {"wgmma: a descriptor without the 128-byte swizzle"}));
  EXPECT_TRUE(fails(kOutside, {"out of bounds: a descriptor of a wgmma leads to"}));
}

// cp.async into a tile: who fences. 0 nobody, 1 the writer after its wait, 2 the reader.
__global__ void gathered(float* out, const __nv_bfloat16* from, int fence) {
  unsigned char* tiles = moe::dynamic_shared();
  auto* barrier = reinterpret_cast<std::uint64_t*>(tiles + kSharedBytes);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    moe::mbarrier_init(barrier, 128);
    moe::mbarrier_init_fence();
  }
  __syncthreads();
  if (thread >= 128) {
    for (int i = thread - 128; i < kSharedBytes / 16; i += 128) {
      moe::cp_async16(tiles + i * 16, from);
    }
    if (fence == 1) {
      moe::cp_async_commit();
      moe::cp_async_wait<0>();
      moe::fence_proxy_async();
      moe::mbarrier_arrive(barrier);
    } else {
      moe::cp_async_mbarrier_arrive_noinc(barrier);
    }
    return;
  }
  if (fence == 3) {
    __nanosleep(10);
  } else {
    moe::mbarrier_wait(barrier, 0);
  }
  if (fence >= 2) moe::fence_proxy_async();
  float d[kN / 2];
  moe::wgmma_fence();
  moe::wgmma_bf16(d, moe::wgmma_descriptor(tiles), moe::wgmma_descriptor(tiles + 64 * 128), false);
  moe::wgmma_commit();
  moe::wgmma_wait<0>();
  out[thread] = d[0];
}

TEST_F(WgmmaTest, GatheredTilesWantAFence) {
  DeviceArray<__nv_bfloat16> from(std::vector<__nv_bfloat16>(8, __float2bfloat16(1.0f)));
  DeviceArray<float> out(128);
  const __nv_bfloat16* start = from.get();
  for (const auto order : {emulator::Order::kForward, emulator::Order::kReverse}) {
    emulator::options().order = order;
    for (int fence = 1; fence <= 2; ++fence) {
      ASSERT_EQ(moe::launch(gathered, 1, 256, kSharedBytes + 64, nullptr, out.get(), start, fence),
                cudaSuccess)
          << fault();
      EXPECT_EQ(out.host(), std::vector<float>(128, 16.0f));
    }
    EXPECT_NE(moe::launch(gathered, 1, 256, kSharedBytes + 64, nullptr, out.get(), start, 0),
              cudaSuccess);
    EXPECT_TRUE(holds(fault(), {"missing fence: wgmma reads byte 0 of dynamic shared memory"}));
    emulator::clear_fault();
  }
  EXPECT_NE(moe::launch(gathered, 1, 256, kSharedBytes + 64, nullptr, out.get(), start, 3),
            cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"missing wait: wgmma reads byte 0 of dynamic shared memory, which a "
                              "copy under way has not filled yet"}));
}

// wait<1> leaves the newest group under way.
__global__ void two_groups(float* seen) {
  auto* tiles = moe::dynamic_shared<__nv_bfloat16>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSharedBytes / 2; i += 128) tiles[i] = __float2bfloat16(1.0f);
  moe::fence_proxy_async();
  __syncthreads();
  const std::uint64_t a = moe::wgmma_descriptor(tiles);
  const std::uint64_t b = moe::wgmma_descriptor(tiles + 64 * 64);
  float first[kN / 2];
  float second[kN / 2];
  moe::wgmma_fence();
  moe::wgmma_bf16(first, a, b, false);
  moe::wgmma_commit();
  moe::wgmma_bf16(second, a, b, false);
  moe::wgmma_commit();
  moe::wgmma_wait<1>();
  if (thread == 0) seen[0] = first[0];
  if (thread == 0) seen[1] = second[0];
  moe::wgmma_wait<0>();
  if (thread == 0) seen[2] = second[0];
}

TEST_F(WgmmaTest, GroupsCompleteInOrder) {
  DeviceArray<float> seen(3);
  ASSERT_EQ(moe::launch(two_groups, 1, 128, kSharedBytes, nullptr, seen.get()), cudaSuccess);
  EXPECT_EQ(seen.host()[0], 16.0f);
  EXPECT_NE(seen.host()[1], seen.host()[1]);
  EXPECT_EQ(seen.host()[2], 16.0f);
}

__global__ void part_of_a_warpgroup() {
  float d[kN / 2] = {};
  moe::wgmma_bf16(d, 0, 0, false);
}

// Adds 32 products of codes of 1 to `start`.
__global__ void add_codes(float* out, float start) {
  auto* tiles = moe::dynamic_shared<unsigned char>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kSharedBytes; i += 128) tiles[i] = 0x38;
  moe::fence_proxy_async();
  __syncthreads();
  float d[kN / 2];
  for (float& sum : d) sum = start;
  moe::wgmma_fence();
  moe::wgmma_e4m3(d, moe::wgmma_descriptor(tiles), moe::wgmma_descriptor(tiles + 64 * 128), true);
  moe::wgmma_commit();
  moe::wgmma_wait<0>();
  out[thread] = d[3];
}

TEST_F(WgmmaTest, SumsOfCodesKeep14Bits) {
  const auto sum_from = [](float start) {
    DeviceArray<float> out(128);
    EXPECT_EQ(moe::launch(add_codes, 1, 128, kSharedBytes, nullptr, out.get(), start), cudaSuccess);
    return out.host()[77];
  };
  EXPECT_EQ(sum_from(0.0f), 32.0f);
  EXPECT_EQ(sum_from(0x1p18f), 0x1p18f + 32.0f);  // its last bit of 14
  EXPECT_EQ(sum_from(0x1p19f), 0x1p19f);
  EXPECT_EQ(sum_from(-0x1p20f), -0x1p20f + 64.0f);  // cut towards zero
}

TEST_F(WgmmaTest, WholeWarpgroupsOnly) {
  EXPECT_NE(moe::launch(part_of_a_warpgroup, 1, 96, kSharedBytes, nullptr), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"divergence: wgmma needs all 128 threads of the warpgroup"}));
}

}  // namespace
