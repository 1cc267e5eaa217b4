// mbarriers, named barriers and register budgets: who waits for what, and what is refused.
#include "emulator_test.h"

#include <drills/hopper.h>

namespace {

using MbarrierTest = EmulatorTest;

__device__ std::uint64_t* barriers() {
  return moe::dynamic_shared<std::uint64_t>();
}

// Runs a kernel that must fail, and looks into the report.
template <class... P>
testing::AssertionResult fails(void (*kernel)(P...),
                               int threads,
                               const std::vector<std::string>& parts,
                               P... arguments) {
  if (moe::launch(kernel, 1, threads, 1024, nullptr, arguments...) == cudaSuccess) {
    return testing::AssertionFailure() << "no fault";
  }
  const auto result = holds(emulator::fault(), parts);
  emulator::clear_fault();
  return result;
}

__global__ void never_initialised() {
  moe::mbarrier_wait(&barriers()[1], 0);
}

__global__ void used_as_data() {
  moe::mbarrier_init(barriers(), 1);
  barriers()[0] = 0;
  moe::mbarrier_arrive(barriers());
}

__global__ void off_by_four() {
  moe::mbarrier_init(reinterpret_cast<std::uint64_t*>(moe::dynamic_shared() + 4), 1);
}

__global__ void no_arrivals() {
  moe::mbarrier_init(barriers(), 0);
}

__global__ void initialised_in_use() {
  moe::mbarrier_init(barriers(), 2);
  moe::mbarrier_arrive(barriers());
  moe::mbarrier_init(barriers(), 2);
}

__global__ void parity_of_two() {
  moe::mbarrier_init(barriers(), 1);
  moe::mbarrier_wait(barriers(), 2);
}

TEST_F(MbarrierTest, MisuseIsNamed) {
  EXPECT_TRUE(fails(never_initialised, 1,
                    {"mbarrier: mbarrier_wait: the mbarrier at byte 8 of dynamic shared memory was "
                     "never initialised",
                     "mbarrier_test.cu:"}));
  EXPECT_TRUE(fails(used_as_data, 1, {"was overwritten: its 8 bytes are used as data"}));
  EXPECT_TRUE(fails(off_by_four, 1, {"misaligned: mbarrier_init"}));
  EXPECT_TRUE(fails(no_arrivals, 1, {"mbarrier_init: 0 arrivals are not 1 to 1048575"}));
  EXPECT_TRUE(fails(initialised_in_use, 1, {"is initialised again while it is in use"}));
  EXPECT_TRUE(fails(parity_of_two, 1, {"the parity is 2, not 0 or 1"}));
}

__global__ void too_many_arrivals() {
  if (threadIdx.x == 0) {
    moe::mbarrier_init(barriers(), 2);
    moe::mbarrier_arrive_expect_tx(barriers(), 64);
  }
  __syncthreads();
  moe::mbarrier_arrive(barriers());
}

TEST_F(MbarrierTest, MoreArrivalsThanThePhaseCounts) {
  EXPECT_TRUE(fails(too_many_arrivals, 32,
                    {"mbarrier: the mbarrier at byte 0 of dynamic shared memory gets more arrivals "
                     "in a phase than the 2",
                     "still waits for 64 bytes", "mbarrier_test.cu:"}));
}

const std::string kFirstWait = EMULATOR_TEST_LINE(10);
const std::string kSecondWait = EMULATOR_TEST_LINE(11);

__global__ void two_wait(int tries) {
  if (threadIdx.x == 0) {
    moe::mbarrier_init(&barriers()[2], 3);
    moe::mbarrier_init(&barriers()[3], 1);
    moe::mbarrier_arrive_expect_tx(&barriers()[3], 512);
  }
  __syncthreads();
  if (threadIdx.x < 32) moe::mbarrier_wait(&barriers()[2], 0);
  while (tries != 0 && !moe::mbarrier_try_wait(&barriers()[3], 1)) {
  }
  moe::mbarrier_wait(&barriers()[3], 0);
}

TEST_F(MbarrierTest, DeadlockSaysWhoWaitsWhere) {
  EXPECT_TRUE(fails(two_wait, 96,
                    {"deadlock: no thread of the block can go on", "in block (0,0,0)",
                     "32 threads, first thread (0,0,0): wait at mbarrier_wait", kFirstWait,
                     "mbarrier at byte 16 of dynamic shared memory, parity 0: 3 of 3 arrivals "
                     "missing",
                     "64 threads, first thread (32,0,0): wait at mbarrier_wait",
                     "mbarrier at byte 24 of dynamic shared memory, parity 0: 0 of 1 arrivals "
                     "missing, 512 bytes missing, no copy under way"},
                    0));
}

__global__ void tries_for_ever() {
  moe::mbarrier_init(barriers(), 1);
  while (!moe::mbarrier_try_wait(barriers(), 0)) {
  }
}

// A thread that is told no does something else, which lets the phase end.
__global__ void tries_and_arrives(int* refused) {
  moe::mbarrier_init(barriers(), 1);
  while (!moe::mbarrier_try_wait(barriers(), 0)) {
    if (++*refused == 3) moe::mbarrier_arrive(barriers());
  }
}

TEST_F(MbarrierTest, TryWaitSaysNoWhenNobodyCanGoOn) {
  EXPECT_TRUE(fails(tries_for_ever, 1,
                    {"deadlock", "wait at mbarrier_try_wait", "1 of 1 arrivals missing"}));
  DeviceArray<int> refused(1);
  EXPECT_EQ(moe::launch(tries_and_arrives, 1, 1, 64, nullptr, refused.get()), cudaSuccess);
  EXPECT_EQ(refused.host()[0], 3);
}

__global__ void fresh_barrier(int* out) {
  moe::mbarrier_init(barriers(), 1);
  moe::mbarrier_wait(barriers(), 1);
  out[0] = 1;
  moe::mbarrier_arrive(barriers());
  moe::mbarrier_wait(barriers(), 0);
  out[0] = 2;
}

TEST_F(MbarrierTest, AFreshBarrierHasEndedThePhaseOfParityOne) {
  DeviceArray<int> out(1);
  EXPECT_EQ(moe::launch(fresh_barrier, 1, 1, 64, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host()[0], 2);
}

// cp.async whose arrival somebody waits for: the producer may return before they land.
__global__ void gather(int* out, const int4* from, int with_wait) {
  auto* rows = reinterpret_cast<int4*>(moe::dynamic_shared() + 64);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) moe::mbarrier_init(barriers(), 32);
  __syncthreads();
  if (thread < 32) {
    moe::cp_async16(&rows[thread], &from[thread]);
    moe::cp_async_mbarrier_arrive_noinc(barriers());
    return;
  }
  if (with_wait != 0) moe::mbarrier_wait(barriers(), 0);
  out[thread - 32] = rows[thread - 32].z;
}

TEST_F(MbarrierTest, AsyncArrivalsLandWithTheirCopies) {
  std::vector<int4> values;
  for (int i = 0; i < 32; ++i) values.push_back({0, 0, i, 0});
  DeviceArray<int4> from(values);
  DeviceArray<int> out(32);
  const int4* start = from.get();
  ASSERT_EQ(moe::launch(gather, 1, 64, 1024, nullptr, out.get(), start, 1), cudaSuccess);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out.host()[static_cast<std::size_t>(i)], i);
  ASSERT_EQ(moe::launch(gather, 1, 64, 1024, nullptr, out.get(), start, 0), cudaSuccess);
  EXPECT_EQ(out.host()[5], -1) << "garbage without the wait";
}

// ---- Named barriers.

__global__ void counts_differ() {
  moe::named_barrier_sync(3, threadIdx.x < 32 ? 64 : 96);
}
__global__ void barrier_16() {
  moe::named_barrier_sync(16, 32);
}
__global__ void half_a_warp() {
  moe::named_barrier_sync(1, 48);
}
__global__ void one_warp_missing() {
  if (threadIdx.x < 64) moe::named_barrier_sync(5, 96);
}

TEST_F(MbarrierTest, NamedBarriersAreChecked) {
  EXPECT_TRUE(fails(counts_differ, 96,
                    {"divergence: threads meet at named barrier 3 for 64 threads", "and for 96"}));
  EXPECT_TRUE(fails(barrier_16, 32, {"named barrier 16 is not one of 1 to 15"}));
  EXPECT_TRUE(fails(half_a_warp, 64, {"named barrier 1 for 48 threads: whole warps"}));
  EXPECT_TRUE(fails(one_warp_missing, 96,
                    {"deadlock", "64 threads, first thread (0,0,0): wait at named_barrier_sync",
                     "barrier 5: 32 of 96 threads missing"}));
}

// ---- Registers.

__global__ void too_greedy() {
  if (threadIdx.x < 128) {
    moe::setmaxnreg_dec<40>();
  } else {
    moe::setmaxnreg_inc<240>();
  }
}
__global__ void wrong_way() {
  moe::setmaxnreg_dec<240>();
}
__global__ void fair() {
  if (threadIdx.x < 256) {
    moe::setmaxnreg_inc<240>();
  } else {
    moe::setmaxnreg_dec<24>();
  }
}

TEST_F(MbarrierTest, RegistersHaveABudget) {
  EXPECT_TRUE(fails(
      too_greedy, 384,
      {"deadlock", "wait at setmaxnreg", "registers a thread: 40 240 168 (wants 240)", "free 56"}));
  EXPECT_TRUE(
      fails(wrong_way, 384, {"setmaxnreg_dec<240>: the warpgroup has 168 registers a thread"}));
  EXPECT_EQ(moe::launch(fair, 1, 384, 0, nullptr), cudaSuccess);
}

// ---- elect: no lane may be relied on.

__global__ void elected(int* lane) {
  if (moe::elect_one()) *lane = static_cast<int>(threadIdx.x);
}

TEST_F(MbarrierTest, AnotherLaneIsElectedInReverseOrder) {
  DeviceArray<int> lane(1);
  ASSERT_EQ(moe::launch(elected, 1, 32, 0, nullptr, lane.get()), cudaSuccess);
  EXPECT_EQ(lane.host()[0], 0);
  emulator::options().order = emulator::Order::kReverse;
  ASSERT_EQ(moe::launch(elected, 1, 32, 0, nullptr, lane.get()), cudaSuccess);
  EXPECT_EQ(lane.host()[0], 31);
}

// ---- Blocks that wait for others.

__global__ void wait_for_block(std::int32_t* flags, int distance) {
  const int block = static_cast<int>(blockIdx.x);
  const int other = block + distance;
  if (other >= 0 && other < static_cast<int>(gridDim.x)) {
    while (moe::load_acquire(&flags[other]) == 0) {
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) moe::add_release(&flags[block], 1);
}

TEST_F(MbarrierTest, BlocksMayWaitForEarlierOnes) {
  DeviceArray<std::int32_t> flags(16);
  ASSERT_EQ(moe::launch(wait_for_block, 16, 32, 0, nullptr, flags.get(), -1), cudaSuccess);
  EXPECT_EQ(flags.host(), std::vector<std::int32_t>(16, 1));
}

TEST_F(MbarrierTest, BlocksThatWaitForLaterOnesHang) {
  emulator::options().hang_seconds = 0.2;
  DeviceArray<std::int32_t> flags(64);
  EXPECT_NE(moe::launch(wait_for_block, 64, 32, 0, nullptr, flags.get(), 32), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"hang: the value that load_acquire() waits for never comes",
                              "32 threads, first thread (0,0,0): wait at load_acquire"}));
}

}  // namespace
