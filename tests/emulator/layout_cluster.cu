// Clusters: rank, barrier, multicast, remote arrivals and stores; register budgets.
#include "layout_hopper.h"

namespace layout {

namespace {

constexpr int kThreads = 128;

// Each block of a cluster of four loads its quarter of a tile for all, and reports the sum. The map
// has planes, of which plane 1 is loaded, or none.
__global__ void multicast_kernel(int* out, const __grid_constant__ CUtensorMap map, bool planes) {
  constexpr int kBlocks = 4;
  constexpr int kBoxRows = 8;
  unsigned char* tile = moe::dynamic_shared();
  auto* barrier = reinterpret_cast<uint64_t*>(tile + kBlocks * kBoxRows * 128);
  const int rank = moe::cluster_rank();
  if (threadIdx.x == 0) {
    moe::mbarrier_init(barrier, 1);
    moe::mbarrier_init_fence();
    moe::mbarrier_arrive_expect_tx(barrier, kBlocks * kBoxRows * 128);
  }
  moe::cluster_sync();
  if (threadIdx.x == 0) {
    unsigned char* part = tile + rank * kBoxRows * 128;
    if (planes) {
      moe::tma_load_multicast(part, map, 0, rank * kBoxRows, 1, barrier, 0xf);
    } else {
      moe::tma_load_multicast(part, map, 0, rank * kBoxRows, barrier, 0xf);
    }
  }
  moe::mbarrier_wait(barrier, 0);
  int sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < kBlocks * kBoxRows * 128; i += kThreads) {
    sum += tile[i];
  }
  atomicAdd(&out[blockIdx.x], sum);
  if (threadIdx.x == 0) out[8 + blockIdx.x] = rank;
  moe::cluster_sync();
}

// Each block tells the next one of its cluster its index, with st.async or with a remote arrival
// after a store to global memory.
__global__ void remote_kernel(int* out) {
  auto* barriers = moe::dynamic_shared<uint64_t>();
  int* slot = reinterpret_cast<int*>(barriers + 2);
  const int rank = moe::cluster_rank();
  const int next = (rank + 1) % 2;
  if (threadIdx.x == 0) {
    moe::mbarrier_init(&barriers[0], 1);
    moe::mbarrier_init(&barriers[1], kThreads);
    moe::mbarrier_init_fence();
    moe::mbarrier_arrive_expect_tx(&barriers[0], 4);
  }
  moe::cluster_sync();
  if (threadIdx.x == 0) {
    moe::store_async_remote(slot, 100 + static_cast<int>(blockIdx.x), &barriers[0], next);
  }
  moe::mbarrier_arrive_remote(&barriers[1], next);
  moe::mbarrier_wait(&barriers[0], 0);
  moe::mbarrier_wait(&barriers[1], 0);
  if (threadIdx.x == 0) out[blockIdx.x] = *slot;
  moe::cluster_sync();
}

// Three warpgroups share out their registers.
__global__ void __launch_bounds__(384, 1) registers_kernel(int* out) {
  const int warpgroup = static_cast<int>(threadIdx.x) / kThreads;
  if (warpgroup == 0) {
    moe::setmaxnreg_dec<40>();
    atomicAdd(&out[0], 1);
  } else {
    moe::setmaxnreg_inc<232>();
    atomicAdd(&out[1], 1);
  }
}

void check_multicast(bool planes) {
  constexpr std::size_t kPlane = std::size_t{40} * 128;
  std::vector<std::uint8_t> values(kPlane * 2);
  const std::size_t first = planes ? kPlane : 0;
  int want = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(hash(static_cast<unsigned>(i)));
    if (i >= first && i < first + std::size_t{32} * 128) want += values[i];
  }
  const Array<std::uint8_t> array(values);
  const Array<int> out(std::vector<int>(16));
  moe::LaunchOptions options;
  options.cluster_size = 4;
  const CUtensorMap map =
      planes ? map_of(array.get(), {128, 40, 2}, 8) : map_of(array.get(), {128, 40}, 8);
  start(options, multicast_kernel, 8, kThreads, 4 * 8 * 128 + 64, out.get(), map, planes);
  const auto got = out.host();
  int wrong_ranks = 0;
  int wrong_sums = 0;
  for (int i = 0; i < 8; ++i) {
    wrong_sums += got[static_cast<std::size_t>(i)] != want ? 1 : 0;
    wrong_ranks += got[static_cast<std::size_t>(8 + i)] != i % 4 ? 1 : 0;
  }
  if (planes) report("cluster_rank", wrong_ranks);
  report(planes ? "tma_load_multicast of a plane" : "tma_load_multicast", wrong_sums);
}

}  // namespace

void check_clusters() {
  for (const bool planes : {true, false}) check_multicast(planes);
  const Array<int> out(std::vector<int>(6));
  moe::LaunchOptions options;
  options.cluster_size = 2;
  start(options, remote_kernel, 6, kThreads, 64, out.get());
  int wrong = 0;
  for (int i = 0; i < 6; ++i) {
    wrong += out.host()[static_cast<std::size_t>(i)] != 100 + (i ^ 1) ? 1 : 0;
  }
  report("st.async and remote arrivals", wrong);

  const Array<int> counts(std::vector<int>(2));
  start({}, registers_kernel, 1, 384, 0, counts.get());
  report("setmaxnreg", (counts.host()[0] != 128 ? 1 : 0) + (counts.host()[1] != 256 ? 1 : 0));
}

}  // namespace layout
