// mbarriers, bulk tensor copies, clusters, register budgets: the emulator's twin of
// drills/hopper.h, which explains each function.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <emulator/hopper.h>

#include <cstdint>

#include <drills/ptx.h>

namespace moe {

// ---- mbarriers.
inline void mbarrier_init(std::uint64_t* barrier, int arrivals, EMULATOR_HERE) {
  ::emulator::mbarrier_init(barrier, arrivals, place);
}
inline void mbarrier_init_fence() {
  ::emulator::mbarrier_init_fence();
}
inline void mbarrier_arrive(std::uint64_t* barrier, EMULATOR_HERE) {
  ::emulator::mbarrier_arrive(barrier, 0, place);
}
inline void mbarrier_arrive_expect_tx(std::uint64_t* barrier, int bytes, EMULATOR_HERE) {
  ::emulator::mbarrier_arrive(barrier, bytes, place);
}
inline void mbarrier_arrive_remote(std::uint64_t* barrier, int rank, EMULATOR_HERE) {
  ::emulator::mbarrier_arrive_remote(barrier, rank, place);
}
inline void cp_async_mbarrier_arrive_noinc(std::uint64_t* barrier, EMULATOR_HERE) {
  ::emulator::cp_async_mbarrier_arrive(barrier, place);
}
// Says no only when no thread can go on otherwise.
inline bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity, EMULATOR_HERE) {
  return ::emulator::mbarrier_try_wait(barrier, parity, place);
}
inline void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, EMULATOR_HERE) {
  ::emulator::mbarrier_wait(barrier, parity, place);
}

// ---- Proxies.
inline void fence_proxy_async() {
  ::emulator::fence_proxy_async();
}
inline void fence_proxy_async_global() {}

// ---- Bulk tensor copies.
struct TensorShape {
  std::uint64_t columns;
  std::uint64_t rows;
  std::uint64_t planes = 0;  // 0: two-dimensional
};

inline cudaError_t make_tensor_map(CUtensorMap* map,
                                   const __nv_bfloat16* array,
                                   const TensorShape& shape,
                                   int box_rows) {
  return ::emulator::encode_tensor_map(map, 2, array, shape.planes == 0 ? 2 : 3,
                                       {shape.columns, shape.rows, shape.planes}, box_rows);
}
inline cudaError_t make_tensor_map(CUtensorMap* map,
                                   const std::uint8_t* array,
                                   const TensorShape& shape,
                                   int box_rows) {
  return ::emulator::encode_tensor_map(map, 1, array, shape.planes == 0 ? 2 : 3,
                                       {shape.columns, shape.rows, shape.planes}, box_rows);
}

inline void tma_load(void* shared,
                     const CUtensorMap& map,
                     int column,
                     int row,
                     std::uint64_t* barrier,
                     EMULATOR_HERE) {
  ::emulator::tma_load(shared, map, {2, {column, row, 0}}, barrier, place);
}
inline void tma_load(void* shared,
                     const CUtensorMap& map,
                     int column,
                     int row,
                     int plane,
                     std::uint64_t* barrier,
                     EMULATOR_HERE) {
  ::emulator::tma_load(shared, map, {3, {column, row, plane}}, barrier, place);
}
inline void tma_load_multicast(void* shared,
                               const CUtensorMap& map,
                               int column,
                               int row,
                               std::uint64_t* barrier,
                               std::uint16_t ranks,
                               EMULATOR_HERE) {
  ::emulator::tma_load_multicast(shared, map, {2, {column, row, 0}}, barrier, ranks, place);
}
inline void tma_load_multicast(void* shared,
                               const CUtensorMap& map,
                               int column,
                               int row,
                               int plane,
                               std::uint64_t* barrier,
                               std::uint16_t ranks,
                               EMULATOR_HERE) {
  ::emulator::tma_load_multicast(shared, map, {3, {column, row, plane}}, barrier, ranks, place);
}
inline void tma_store(
    const CUtensorMap& map, const void* shared, int column, int row, EMULATOR_HERE) {
  ::emulator::tma_store(map, shared, {2, {column, row, 0}}, false, place);
}
inline void tma_reduce_add(
    const CUtensorMap& map, const void* shared, int column, int row, EMULATOR_HERE) {
  ::emulator::tma_store(map, shared, {2, {column, row, 0}}, true, place);
}
inline void bulk_commit() {
  ::emulator::bulk_commit();
}
template <int N>
inline void bulk_wait_read(EMULATOR_HERE) {
  static_assert(N >= 0, "bulk_wait_read<N>(): N is a number of groups");
  ::emulator::bulk_wait(N, true, place);
}
template <int N>
inline void bulk_wait(EMULATOR_HERE) {
  static_assert(N >= 0, "bulk_wait<N>(): N is a number of groups");
  ::emulator::bulk_wait(N, false, place);
}

// ---- Warps and blocks.
inline bool elect_one(EMULATOR_HERE) {
  return ::emulator::elect_one(place);
}
inline void named_barrier_sync(int id, int threads, EMULATOR_HERE) {
  ::emulator::named_barrier(id, threads, true, place);
}
inline void named_barrier_arrive(int id, int threads, EMULATOR_HERE) {
  ::emulator::named_barrier(id, threads, false, place);
}

template <int N>
inline void setmaxnreg_dec(EMULATOR_HERE) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg wants a multiple of 8, 24 to 256");
  ::emulator::set_registers(N, false, place);
}
template <int N>
inline void setmaxnreg_inc(EMULATOR_HERE) {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg wants a multiple of 8, 24 to 256");
  ::emulator::set_registers(N, true, place);
}

inline void cluster_sync(EMULATOR_HERE) {
  ::emulator::cluster_sync(place);
}
inline int cluster_rank() {
  return ::emulator::cluster_rank();
}
inline void store_async_remote(
    int* address, int value, std::uint64_t* barrier, int rank, EMULATOR_HERE) {
  ::emulator::store_async_remote(address, value, barrier, rank, place);
}

// ---- Dependent launches: here a kernel starts when the one before it has ended, so that a missing
// wait is not seen.
inline void griddepcontrol_wait() {}
inline void griddepcontrol_launch_dependents() {}

}  // namespace moe
