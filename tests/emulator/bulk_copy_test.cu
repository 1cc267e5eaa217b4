// Bulk tensor copies: what is refused, what is not there yet, what was forgotten.
#include "emulator_test.h"

#include <drills/hopper.h>

namespace {

class BulkCopyTest : public EmulatorTest {
 protected:
  // 64 rows of 64 bf16.
  BulkCopyTest() : array_(std::vector<__nv_bfloat16>(64 * 64, __float2bfloat16(1.0f))) {}

  CUtensorMap map(int box_rows) const {
    CUtensorMap made;
    EXPECT_EQ(moe::make_tensor_map(&made, array_.get(), {64, 64}, box_rows), cudaSuccess);
    return made;
  }
  template <class... P, class... A>
  testing::AssertionResult fails(const std::vector<std::string>& parts,
                                 void (*kernel)(P...),
                                 A... arguments) const {
    const cudaError_t error = moe::launch(kernel, 1, 32, 8192, nullptr, arguments...);
    if (error == cudaSuccess) return testing::AssertionFailure() << "no fault";
    const auto result = holds(fault(), parts);
    emulator::clear_fault();
    return result;
  }

  DeviceArray<__nv_bfloat16> array_;
};

constexpr int kBoxBytes = 16 * 128;

__device__ std::uint64_t* barrier() {
  return reinterpret_cast<std::uint64_t*>(moe::dynamic_shared() + 4096);
}

__device__ void init(int arrivals) {
  if (threadIdx.x == 0) {
    moe::mbarrier_init(barrier(), arrivals);
    moe::mbarrier_init_fence();
  }
  __syncthreads();
}

TEST_F(BulkCopyTest, MapsAreRefusedAsTheDriverDoes) {
  CUtensorMap made;
  const __nv_bfloat16* array = array_.get();
  EXPECT_EQ(moe::make_tensor_map(&made, array, {64, 64}, 256), cudaSuccess);
  EXPECT_EQ(moe::make_tensor_map(&made, array, {64, 64}, 257), cudaErrorInvalidValue);
  EXPECT_EQ(moe::make_tensor_map(&made, array, {64, 64}, 0), cudaErrorInvalidValue);
  EXPECT_EQ(moe::make_tensor_map(&made, array, {60, 64}, 8), cudaErrorInvalidValue);
  EXPECT_EQ(moe::make_tensor_map(&made, array, {64, 0}, 8), cudaErrorInvalidValue);
  EXPECT_EQ(moe::make_tensor_map(&made, array + 1, {64, 63}, 8), cudaErrorInvalidValue);
  EXPECT_EQ(moe::make_tensor_map(&made, array, {64, 8, 8}, 8), cudaSuccess);
}

// What thread 0 sees before and after its wait.
__global__ void early_read(float* seen, const CUtensorMap map) {
  auto* tile = moe::dynamic_shared<__nv_bfloat16>();
  init(1);
  if (threadIdx.x != 0) return;
  tile[0] = __float2bfloat16(5.0f);
  moe::mbarrier_arrive_expect_tx(barrier(), kBoxBytes);
  moe::tma_load(tile, map, 0, 0, barrier());
  seen[0] = __bfloat162float(tile[0]);
  moe::mbarrier_wait(barrier(), 0);
  seen[1] = __bfloat162float(tile[0]);
}

TEST_F(BulkCopyTest, LoadsLandAtTheWait) {
  DeviceArray<float> seen(2);
  ASSERT_EQ(moe::launch(early_read, 1, 32, 8192, nullptr, seen.get(), map(16)), cudaSuccess);
  EXPECT_NE(seen.host()[0], seen.host()[0]);
  EXPECT_EQ(seen.host()[1], 1);
}

__global__ void load(const CUtensorMap map, int expected, int copies, int offset, int fence) {
  if (threadIdx.x != 0) return;
  moe::mbarrier_init(barrier(), 1);
  if (fence != 0) moe::mbarrier_init_fence();
  for (int i = 0; i < copies; ++i) {
    moe::tma_load(moe::dynamic_shared() + offset, map, 0, 0, barrier());
  }
  if (expected >= 0) {
    moe::mbarrier_arrive_expect_tx(barrier(), expected);
  } else {
    moe::mbarrier_arrive(barrier());
  }
  moe::mbarrier_wait(barrier(), 0);
}

TEST_F(BulkCopyTest, BytesMustBeExpectedExactly) {
  ASSERT_EQ(moe::launch(load, 1, 32, 8192, nullptr, map(16), kBoxBytes, 1, 0, 1), cudaSuccess);
  EXPECT_TRUE(fails({"mbarrier: a phase of the mbarrier at byte 4096", "ends while copies of 2048",
                     "that no expect_tx announced"},
                    load, map(16), -1, 1, 0, 1));
  EXPECT_TRUE(fails({"gets 1024 bytes more in a phase than expect_tx announced"}, load, map(16),
                    1024, 1, 0, 1));
  EXPECT_TRUE(fails({"ends while copies of 2048 bytes"}, load, map(16), kBoxBytes, 2, 0, 1));
  EXPECT_TRUE(fails({"deadlock", "0 of 1 arrivals missing, 16 bytes missing, no copy under way"},
                    load, map(16), kBoxBytes + 16, 1, 0, 1));
}

TEST_F(BulkCopyTest, PlacesAreChecked) {
  EXPECT_TRUE(fails({"misaligned: tma_load"}, load, map(16), kBoxBytes, 1, 64, 1));
#ifndef EMULATOR_ASAN  // which reports it itself
  EXPECT_TRUE(fails({"out of bounds: tma_load: the box of 2048 bytes"}, load, map(16), kBoxBytes, 1,
                    7168, 1));
#endif
  EXPECT_TRUE(
      fails({"missing fence: tma_load: the mbarrier at byte 4096", "without mbarrier_init_fence()"},
            load, map(16), kBoxBytes, 1, 0, 0));
  CUtensorMap planes;
  ASSERT_EQ(moe::make_tensor_map(&planes, array_.get(), {64, 8, 8}, 8), cudaSuccess);
  EXPECT_TRUE(fails({"bulk copy: tma_load: the map has 3 dimensions, the call 2 coordinates"}, load,
                    planes, 1024, 1, 0, 1));
  EXPECT_TRUE(fails({"bulk copy: tma_load: no tensor map that make_tensor_map() made"}, load,
                    CUtensorMap{}, 1024, 1, 0, 1));
}

// What starts at that column. How: 0 tma_load of planes, 1 multicast of planes, 2 tma_store, 3
// tma_reduce_add, 4 multicast.
__global__ void starts_at(const CUtensorMap map, const CUtensorMap planes, int how, int column) {
  if (threadIdx.x != 0) return;
  unsigned char* tile = moe::dynamic_shared();
  moe::mbarrier_init(barrier(), 1);
  moe::mbarrier_init_fence();
  if (how < 2 || how == 4) {
    moe::mbarrier_arrive_expect_tx(barrier(), 1024);
    if (how == 0) moe::tma_load(tile, planes, column, 0, 0, barrier());
    if (how == 1) moe::tma_load_multicast(tile, planes, column, 0, 0, barrier(), 1);
    if (how == 4) moe::tma_load_multicast(tile, map, column, 0, barrier(), 1);
    moe::mbarrier_wait(barrier(), 0);
  } else {
    if (how == 2) moe::tma_store(map, tile, column, 0);
    if (how == 3) moe::tma_reduce_add(map, tile, column, 0);
    moe::bulk_commit();
    moe::bulk_wait<0>();
  }
}

TEST_F(BulkCopyTest, ColumnsAreMultiplesOf16Bytes) {
  CUtensorMap planes;
  ASSERT_EQ(moe::make_tensor_map(&planes, array_.get(), {64, 8, 8}, 8), cudaSuccess);
  const char* names[] = {"tma_load", "tma_load_multicast", "tma_store", "tma_reduce_add",
                         "tma_load_multicast"};
  for (int how = 0; how < 5; ++how) {
    const std::string name = std::string("bulk copy: ") + names[how] + ": ";
    for (const int column : {13, -4, 63}) {
      EXPECT_TRUE(
          fails({name + "the box starts at column " + std::to_string(column) + ", byte " +
                     std::to_string(2 * column) + " of a row, which must be a multiple of 16 bytes",
                 "a GPU reports an illegal instruction", "bulk_copy_test.cu:"},
                starts_at, map(8), planes, how, column));
    }
    for (const int column : {24, -8}) {
      EXPECT_EQ(moe::launch(starts_at, 1, 32, 8192, nullptr, map(8), planes, how, column),
                cudaSuccess)
          << name << fault();
    }
  }
  EXPECT_EQ(moe::launch(starts_at, 1, 32, 8192, nullptr, map(8), planes, 2, 13),
            cudaErrorIllegalInstruction);
}

TEST_F(BulkCopyTest, ColumnsOfCodesAreMultiplesOf16) {
  const DeviceArray<std::uint8_t> codes(std::vector<std::uint8_t>(128 * 16));
  CUtensorMap bytes;
  ASSERT_EQ(moe::make_tensor_map(&bytes, codes.get(), {128, 16}, 8), cudaSuccess);
  EXPECT_EQ(moe::launch(starts_at, 1, 32, 8192, nullptr, bytes, bytes, 2, 16), cudaSuccess);
  EXPECT_TRUE(fails({"tma_store: the box starts at column 8, byte 8 of a row"}, starts_at, bytes,
                    bytes, 2, 8));
}

__global__ void never_waits(const CUtensorMap map) {
  if (threadIdx.x != 0) return;
  moe::mbarrier_init(barrier(), 1);
  moe::mbarrier_init_fence();
  moe::mbarrier_arrive_expect_tx(barrier(), kBoxBytes);
  moe::tma_load(moe::dynamic_shared(), map, 0, 0, barrier());
}

TEST_F(BulkCopyTest, LoadsThatNobodyWaitsForAreAFault) {
  EXPECT_TRUE(fails({"missing wait: the block ended with 1 bulk copies", "bulk_copy_test.cu:"},
                    never_waits, map(16)));
}

// One thread polls for what another does after its load has landed.
__global__ void polls(const CUtensorMap map, std::int32_t* flag) {
  init(1);
  if (threadIdx.x == 0) {
    moe::mbarrier_arrive_expect_tx(barrier(), kBoxBytes);
    moe::tma_load(moe::dynamic_shared(), map, 0, 0, barrier());
    while (moe::load_acquire(flag) == 0) {
    }
  }
  if (threadIdx.x == 1) {
    moe::mbarrier_wait(barrier(), 0);
    moe::add_release(flag, 1);
  }
}

TEST_F(BulkCopyTest, LoadsLandWhileOthersPoll) {
  DeviceArray<std::int32_t> flag(1);
  EXPECT_EQ(moe::launch(polls, 1, 32, 8192, nullptr, map(16), flag.get()), cudaSuccess) << fault();
  EXPECT_EQ(flag.host()[0], 1);
}

// ---- Stores. Steps that may be left out: bit 0 the fence, 1 the commit, 2 the wait for the reads.

__global__ void store(const CUtensorMap map, int steps, int overwrites) {
  auto* tile = moe::dynamic_shared<__nv_bfloat16>();
  const int thread = static_cast<int>(threadIdx.x);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = thread; i < 16 * 64; i += 32) tile[i] = __float2bfloat16(2.0f + turn);
    if ((steps & 1) != 0) moe::fence_proxy_async();
    __syncthreads();
    if (thread == 0) {
      moe::tma_store(map, tile, 0, 16 * turn);
      if ((steps & 2) != 0) moe::bulk_commit();
      if ((steps & 4) != 0) moe::bulk_wait_read<0>();
    }
    __syncthreads();
    if (overwrites == 0) return;
  }
}

TEST_F(BulkCopyTest, StoresWantFenceCommitAndWait) {
  ASSERT_EQ(moe::launch(store, 1, 32, 8192, nullptr, map(16), 7, 1), cudaSuccess);
  EXPECT_EQ(__bfloat162float(array_.host()[15 * 64]), 2.0f);
  EXPECT_EQ(__bfloat162float(array_.host()[16 * 64]), 3.0f);
  EXPECT_EQ(__bfloat162float(array_.host()[32 * 64]), 1.0f);
  EXPECT_TRUE(fails({"missing fence: tma_store reads byte 0 of dynamic shared memory, written "
                     "without a fence_proxy_async() since"},
                    store, map(16), 6, 1));
  EXPECT_TRUE(fails({"missing wait: a thread returned with 1 bulk stores", "bulk_commit()"}, store,
                    map(16), 5, 0));
  EXPECT_TRUE(fails({"missing wait: a thread returned with 1 bulk stores"}, store, map(16), 3, 0));
  EXPECT_TRUE(fails({"missing wait: a thread returned with 2 bulk stores"}, store, map(16), 3, 1));
}

// The second store waits for both; the buffer of the first was overwritten by then.
__global__ void overwritten(const CUtensorMap map) {
  auto* tile = moe::dynamic_shared<__nv_bfloat16>();
  if (threadIdx.x != 0) return;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < 16 * 64; ++i) tile[i] = __float2bfloat16(2.0f + turn);
    moe::fence_proxy_async();
    moe::tma_store(map, tile, 0, 0);
    moe::bulk_commit();
  }
  moe::bulk_wait<0>();
}

TEST_F(BulkCopyTest, OverwritingBeforeTheReadIsSeen) {
  EXPECT_TRUE(fails({"missing wait: shared memory was written while a bulk store had still"},
                    overwritten, map(16)));
}

__global__ void sums(const CUtensorMap map) {
  auto* tile = moe::dynamic_shared<__nv_bfloat16>();
  for (int i = static_cast<int>(threadIdx.x); i < 16 * 64; i += 32) tile[i] = __float2bfloat16(2);
  moe::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x != 0) return;
  moe::tma_reduce_add(map, tile, 0, 0);
  moe::bulk_commit();
  moe::bulk_wait<0>();
}

TEST_F(BulkCopyTest, SumsOfManyBlocksAreComplete) {
  ASSERT_EQ(moe::launch(sums, 32, 32, 8192, nullptr, map(16)), cudaSuccess);
  EXPECT_EQ(__bfloat162float(array_.host()[0]), 65.0f);
  EXPECT_EQ(__bfloat162float(array_.host()[15 * 64 + 63]), 65.0f);
  EXPECT_EQ(__bfloat162float(array_.host()[16 * 64]), 1.0f);
}

}  // namespace
