// Clusters: what is refused, and what blocks of one must not do to each other.
#include "emulator_test.h"

#include <drills/hopper.h>

namespace {

using ClusterTest = EmulatorTest;

moe::LaunchOptions clusters_of(int blocks) {
  moe::LaunchOptions options;
  options.cluster_size = blocks;
  return options;
}

__device__ std::uint64_t* barrier() {
  return moe::dynamic_shared<std::uint64_t>();
}

__global__ void ranks(int* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = moe::cluster_rank();
}

TEST_F(ClusterTest, ConsecutiveBlocksMakeACluster) {
  DeviceArray<int> out(8);
  ASSERT_EQ(moe::launch(clusters_of(4), ranks, 8, 32, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), (std::vector<int>{0, 1, 2, 3, 0, 1, 2, 3}));
  ASSERT_EQ(moe::launch(ranks, 8, 32, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host(), std::vector<int>(8));
}

TEST_F(ClusterTest, OddSizesAreRefused) {
  DeviceArray<int> out(9);
  EXPECT_EQ(moe::launch(clusters_of(2), ranks, 9, 32, 0, nullptr, out.get()),
            cudaErrorInvalidConfiguration);
  EXPECT_TRUE(holds(fault(), {"launch: the grid (9,1,1) is not made of whole clusters of 2"}));
  EXPECT_EQ(moe::launch(clusters_of(9), ranks, 9, 32, 0, nullptr, out.get()),
            cudaErrorInvalidClusterSize);
}

TEST_F(ClusterTest, CapturesKeepTheSize) {
  DeviceArray<int> out(4);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(moe::launch(clusters_of(2), ranks, 4, 32, 0, stream, out.get()), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(out.host(), (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

#ifndef EMULATOR_ASAN  // shared variables have no known home there
__global__ void static_shared(int* out) {
  __shared__ int value;
  if (threadIdx.x == 0) value = static_cast<int>(blockIdx.x);
  __syncthreads();
  out[blockIdx.x] = value;
}

TEST_F(ClusterTest, StaticSharedMemoryIsRefused) {
  DeviceArray<int> out(2);
  EXPECT_NE(moe::launch(clusters_of(2), static_shared, 2, 32, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"cluster: a kernel that is launched in clusters may use dynamic "
                              "shared memory only"}));
}
#endif

__global__ void one_stays_away() {
  if (blockIdx.x == 1 && threadIdx.x < 32) {
    if (threadIdx.x == 0) moe::mbarrier_init(barrier(), 1);
    __syncwarp();
    moe::mbarrier_wait(barrier(), 0);
  }
  moe::cluster_sync();
}

TEST_F(ClusterTest, DeadlockShowsAllBlocks) {
  EXPECT_NE(moe::launch(clusters_of(2), one_stays_away, 2, 64, 64, nullptr), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"deadlock: no thread of the cluster can go on",
                              "rank 0:", "64 threads, first thread (0,0,0): wait at cluster_sync",
                              "rank 1:", "32 threads, first thread (0,0,0): wait at mbarrier_wait",
                              "32 threads, first thread (32,0,0): wait at cluster_sync"}));
}

__global__ void arrives_late(int rank) {
  if (threadIdx.x == 0) {
    moe::mbarrier_init(barrier(), 1);
    moe::mbarrier_init_fence();
  }
  moe::cluster_sync();
  if (moe::cluster_rank() == 0) return;
  for (int i = 0; i < 100; ++i) __nanosleep(10);
  if (threadIdx.x == 0) moe::mbarrier_arrive_remote(barrier(), rank);
}

TEST_F(ClusterTest, PeersMustStillBeThere) {
  EXPECT_NE(moe::launch(clusters_of(2), arrives_late, 2, 32, 64, nullptr, 0), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"cluster: mbarrier_arrive_remote: block 0 of the cluster has ended",
                              "in block (1,0,0) thread (0,0,0)"}));
  emulator::clear_fault();
  EXPECT_NE(moe::launch(clusters_of(2), arrives_late, 2, 32, 64, nullptr, 2), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"out of bounds: mbarrier_arrive_remote: block 2 of a cluster of 2"}));
}

__global__ void stores_alone() {
  moe::store_async_remote(moe::dynamic_shared<int>() + 4, 1, barrier(), 0);
}

TEST_F(ClusterTest, RemoteStoresWantAClusterLaunch) {
  EXPECT_NE(moe::launch(stores_alone, 1, 32, 64, nullptr), cudaSuccess);
  EXPECT_TRUE(holds(fault(), {"cluster: store_async_remote() in a kernel that was launched "
                              "without clusters"}));
}

// A ring through the blocks, by polling and by barriers.
__global__ void ring(int* out, std::int32_t* flag) {
  const int rank = moe::cluster_rank();
  if (threadIdx.x == 0) {
    while (moe::load_acquire(flag) != 3 - rank) {
    }
    out[rank] = 10 * rank;
    moe::add_release(flag, 1);
  }
  moe::cluster_sync();
}

TEST_F(ClusterTest, BlocksOfAClusterMayWaitForEachOther) {
  DeviceArray<int> out(4);
  DeviceArray<std::int32_t> flag(1);
  ASSERT_EQ(moe::launch(clusters_of(4), ring, 4, 32, 0, nullptr, out.get(), flag.get()),
            cudaSuccess)
      << fault();
  EXPECT_EQ(out.host(), (std::vector<int>{0, 10, 20, 30}));
}

}  // namespace
