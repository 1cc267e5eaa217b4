// Threads that don't meet where they should: what the emulator says, and where.
#include "emulator_test.h"

#include <drills/ptx.h>

namespace {

using DivergenceTest = EmulatorTest;
constexpr unsigned kAll = 0xffffffffu;

const std::string kFirstBarrier = EMULATOR_TEST_LINE(5);
const std::string kSecondBarrier = EMULATOR_TEST_LINE(6);

__global__ void two_barriers() {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}

TEST_F(DivergenceTest, NamesBothBarriers) {
  EXPECT_EQ(moe::launch(two_barriers, 2, 128, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"divergence: threads of one block wait at different __syncthreads()",
                              "\n  in block (", "at ", kFirstBarrier, kSecondBarrier,
                              "wait at __syncthreads ("}));
}

const std::string kBarrier = EMULATOR_TEST_LINE(4);

__global__ void early_return(int limit) {
  if (static_cast<int>(threadIdx.x) >= limit) return;
  __syncthreads();
}

TEST_F(DivergenceTest, CountsThreadsThatReturned) {
  EXPECT_EQ(moe::launch(early_return, 1, 128, 0, nullptr, 96), cudaErrorLaunchFailure);
  EXPECT_EQ(fault_kind(), "divergence");
  EXPECT_TRUE(holds(fault(), {kBarrier, "returned from the kernel"}));
}

TEST_F(DivergenceTest, WholeBlockMayReturn) {
  EXPECT_EQ(moe::launch(early_return, 1, 128, 0, nullptr, 0), cudaSuccess);
  EXPECT_EQ(fault(), "");
}

__global__ void mixed_barriers(int* out) {
  if (threadIdx.x == 0) {
    out[0] = __syncthreads_count(1);
  } else {
    __syncthreads();
  }
}

TEST_F(DivergenceTest, TellsBarrierKindsApart) {
  DeviceArray<int> out(1);
  EXPECT_EQ(moe::launch(mixed_barriers, 1, 64, 0, nullptr, out.get()), cudaErrorLaunchFailure);
  EXPECT_EQ(fault_kind(), "divergence");
}

__global__ void different_functions() {
  if (threadIdx.x % 2 == 0) {
    (void)__shfl_xor_sync(kAll, 1, 2);
  } else {
    __syncwarp();
  }
}

TEST_F(DivergenceTest, NamesDifferentWarpFunctions) {
  EXPECT_EQ(moe::launch(different_functions, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"divergence: lanes of one warp execute different warp functions",
                              "__shfl_xor_sync", "__syncwarp"}));
}

__global__ void overlapping_masks() {
  const unsigned mask = threadIdx.x < 16 ? 0x0001ffffu : 0xffff0000u;
  if (threadIdx.x == 16) return;
  __nanosleep(1);  // lane 16 is gone when the others call
  (void)__ballot_sync(mask, 1);
}

TEST_F(DivergenceTest, LanesThatReturnedAreNotWaitedFor) {
  // Lane 16 returned before the others finished: both halves go on.
  EXPECT_EQ(moe::launch(overlapping_masks, 1, 32, 0, nullptr), cudaSuccess);
}

__global__ void different_masks() {
  const unsigned mask = threadIdx.x < 16 ? kAll : 0xffff0000u;
  (void)__ballot_sync(mask, 1);
}

TEST_F(DivergenceTest, ReportsMasksThatOverlap) {
  emulator::options().order = emulator::Order::kForward;  // else the upper half is through early
  EXPECT_EQ(moe::launch(different_masks, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"masks that overlap and differ", "0xffffffff", "0xffff0000"}));
}

__global__ void not_in_mask() {
  (void)__any_sync(0xfffeu, 1);
}

TEST_F(DivergenceTest, CallerMustBeInItsMask) {
  EXPECT_EQ(moe::launch(not_in_mask, 1, 16, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(
      fault(), {"__any_sync: mask 0x0000fffe leaves out the calling lane 0", "thread (0,0,0)"}));
}

__global__ void reads_outside_mask() {
  if (threadIdx.x < 8) (void)__shfl_sync(0xffu, 1, 9);
}

__global__ void reads_returned_lane() {
  if (threadIdx.x >= 16) return;
  (void)__shfl_down_sync(kAll, 1, 8);
}

TEST_F(DivergenceTest, ShufflesReadLanesThatTakePart) {
  EXPECT_EQ(moe::launch(reads_outside_mask, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"__shfl_sync reads lane 9, which the mask leaves out"}));
  emulator::clear_fault();
  EXPECT_EQ(moe::launch(reads_returned_lane, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"__shfl_down_sync reads lane ", ", which has returned"}));
}

__global__ void partial_mma() {
  float d[4] = {};
  const uint32_t a[4] = {};
  const uint32_t b[2] = {};
  moe::mma_m16n8k16(d, a, b);
}

TEST_F(DivergenceTest, MmaNeedsTheWholeWarp) {
  EXPECT_EQ(moe::launch(partial_mma, 1, 48, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"mma.m16n8k16 needs all 32 lanes", "0xffff0000"}));
}

__global__ void mma_after_return() {
  float d[4] = {};
  const uint32_t a[4] = {};
  const uint32_t b[2] = {};
  if (threadIdx.x == 5) return;
  moe::mma_m16n8k16(d, a, b);
}

TEST_F(DivergenceTest, MmaNeedsLanesThatHaveNotReturned) {
  EXPECT_EQ(moe::launch(mma_after_return, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_EQ(fault_kind(), "divergence");
}

__global__ void mma_at_two_places() {
  float d[4] = {};
  const uint32_t a[4] = {};
  const uint32_t b[2] = {};
  if (threadIdx.x < 16) {
    moe::mma_m16n8k16(d, a, b);
  } else {
    moe::mma_m16n8k16(d, a, b);
  }
}

TEST_F(DivergenceTest, MmaIsOneInstruction) {
  EXPECT_EQ(moe::launch(mma_at_two_places, 1, 32, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"execute mma.m16n8k16 at different places"}));
}

__global__ void shuffle_at_two_places(int* out) {
  int value = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 16) {
    value = __shfl_xor_sync(kAll, value, 16);
  } else {
    value = __shfl_xor_sync(kAll, value, 16);
  }
  out[threadIdx.x] = value;
}

TEST_F(DivergenceTest, ShufflesMayMeetFromTwoPlaces) {
  DeviceArray<int> out(32);
  EXPECT_EQ(moe::launch(shuffle_at_two_places, 1, 32, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host()[3], 19);
}

__global__ void warp_waits_for_block() {
  if (threadIdx.x % 32 < 16) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

TEST_F(DivergenceTest, DeadlockShowsWhereEverybodyWaits) {
  EXPECT_EQ(moe::launch(warp_waits_for_block, 1, 64, 0, nullptr), cudaErrorLaunchFailure);
  EXPECT_TRUE(holds(fault(), {"deadlock: no thread of the block can go on\n  in block (0,0,0)",
                              "\n  32 threads, first thread (0,0,0): wait at __syncwarp (",
                              "\n  32 threads, first thread (16,0,0): wait at __syncthreads ("}));
}

}  // namespace
