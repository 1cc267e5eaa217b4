// What drills/hopper.h and drills/wgmma.h ask of the library.
#pragma once

#include <cuda.h>
#include <emulator/place.h>
#include <emulator/runtime_api.h>

#include <cstdint>

namespace emulator {

// ---- mbarriers. A barrier is named by its 8 bytes of shared memory.
void mbarrier_init(std::uint64_t* barrier, int arrivals, Place place);
void mbarrier_init_fence();
void mbarrier_arrive(std::uint64_t* barrier, int expected_bytes, Place place);
void mbarrier_arrive_remote(std::uint64_t* barrier, int rank, Place place);
void cp_async_mbarrier_arrive(std::uint64_t* barrier, Place place);
bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity, Place place);
void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, Place place);

// ---- Bulk copies.
void fence_proxy_async();
// An array of `sizes` elements, innermost first; rank 2 or 3.
cudaError_t encode_tensor_map(CUtensorMap* map,
                              int element_bytes,
                              const void* array,
                              int rank,
                              const std::uint64_t (&sizes)[3],
                              int box_rows);

// Where a box starts, innermost coordinate first.
struct BoxStart {
  int rank = 2;
  int coordinates[3] = {0, 0, 0};
};
void tma_load(void* shared,
              const CUtensorMap& map,
              const BoxStart& start,
              std::uint64_t* barrier,
              Place place);
void tma_load_multicast(void* shared,
                        const CUtensorMap& map,
                        const BoxStart& start,
                        std::uint64_t* barrier,
                        std::uint16_t ranks,
                        Place place);
void tma_store(
    const CUtensorMap& map, const void* shared, const BoxStart& start, bool add, Place place);
void bulk_commit();
// Waits until at most that many groups are still to be read, or (read_only false) to be written.
void bulk_wait(int pending_groups, bool read_only, Place place);

// ---- Warps, warpgroups, clusters.
bool elect_one(Place place);
void named_barrier(int id, int threads, bool waits, Place place);
void set_registers(int registers, bool more, Place place);
void cluster_sync(Place place);
int cluster_rank();
void store_async_remote(int* address, int value, std::uint64_t* barrier, int rank, Place place);

// ---- wgmma, by one of the 128 threads.
struct WgmmaCall {
  float* d = nullptr;
  const std::uint32_t* a_registers = nullptr;  // A's four registers; null: A is in shared memory
  std::uint64_t a = 0;                         // descriptors
  std::uint64_t b = 0;
  int n = 0;
  bool accumulate = false;
  bool a_is_mn_major = false;
  bool b_is_mn_major = false;
  bool is_e4m3 = false;
};
void wgmma(const WgmmaCall& call, Place place);
void wgmma_fence();
void wgmma_commit();
void wgmma_wait(int pending_groups, Place place);

}  // namespace emulator
