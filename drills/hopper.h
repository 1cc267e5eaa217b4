// hopper.h: what came with sm_90: mbarriers, bulk tensor copies (TMA), clusters, register budgets
// and dependent launches, one function each. wgmma is in <drills/wgmma.h>.
//
// CUDA version; these instructions exist on capability 9.0 only (compiled for 90a), elsewhere they
// trap. The emulator's twin is emulator/include/drills/hopper.h. Names are those of the PTX ISA
// manual.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include <drills/ptx.h>

// Code for other architectures is compiled too, and must never run: the stages refuse the device.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define MOE_SM90(...) asm volatile(__VA_ARGS__)
#else
#define MOE_SM90(...) __trap()
#endif

namespace moe {

// ---- mbarriers: 8 bytes of shared memory that count arrivals and bytes.
//
// A barrier goes through phases. A phase ends when its `arrivals` have come and every byte that was
// announced (expect_tx) has arrived; the next one starts at once. wait(parity) returns when the
// phase of that parity has ended: the first phase has parity 0, the next 1, then 0 again. So a wait
// for parity 1 on a fresh barrier returns at once, which is how a ring starts with free buffers.

// One thread initialises, then mbarrier_init_fence(), then a barrier of the block (or cluster).
__device__ __forceinline__ void mbarrier_init(uint64_t* barrier, int arrivals) {
  MOE_SM90("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals)
           : "memory");
}
__device__ __forceinline__ void mbarrier_init_fence() {
  MOE_SM90("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint64_t* barrier) {
  MOE_SM90("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Arrives, and announces `bytes` that the phase has to wait for besides.
__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint64_t* barrier, int bytes) {
  MOE_SM90("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
           "r"(bytes)
           : "memory");
}

// Arrives at the barrier at the same place in block `rank` of the cluster.
__device__ __forceinline__ void mbarrier_arrive_remote(uint64_t* barrier, int rank) {
  MOE_SM90(
      "{\n.reg .b32 remote;\nmapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(shared_address(barrier)),
      "r"(rank)
      : "memory");
}

// Makes the barrier count one arrival when all earlier cp.async of this thread have landed. The
// arrival is one of those that init counted (.noinc).
__device__ __forceinline__ void cp_async_mbarrier_arrive_noinc(uint64_t* barrier) {
  MOE_SM90("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
           : "memory");
}

// Whether the phase of this parity has ended. May sleep a while before it says no.
__device__ __forceinline__ bool mbarrier_try_wait(uint64_t* barrier, uint32_t parity) {
  uint32_t done = 0;
  MOE_SM90(
      "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.u32 %0, 1, 0, done;\n}"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(parity)
      : "memory");
  return done != 0;
}
__device__ __forceinline__ void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

// ---- Proxies. Bulk copies and wgmma reach memory by another path (the async proxy) than ordinary
// loads, stores and cp.async. What this thread wrote by the ordinary path is seen by the other only
// after this fence, executed by the writer before it tells anybody.
__device__ __forceinline__ void fence_proxy_async() {
  MOE_SM90("fence.proxy.async.shared::cta;" ::: "memory");
}
// The same for global memory.
__device__ __forceinline__ void fence_proxy_async_global() {
  MOE_SM90("fence.proxy.async.global;" ::: "memory");
}

// ---- Bulk tensor copies. A tensor map says where an array is, its sizes, and the box that one
// copy moves; it is made on the host and passed to the kernel as `const __grid_constant__
// CUtensorMap`.
//
// All maps here swizzle by 128 bytes: a row of the box is 128 bytes, rows follow each other, and
// 16-byte chunk c of row r lies where chunk c ^ (r % 8) would. The box starts at a multiple of 1024
// bytes. Elements outside the array arrive as zeros and are not stored. The column at which a box
// starts, counted in bytes, is a multiple of 16, also before the array: else the GPU reports an
// illegal instruction.

// Forms of the array: [rows, columns], and [planes, rows, columns], dense.
struct TensorShape {
  uint64_t columns;
  uint64_t rows;
  uint64_t planes = 0;  // 0: two-dimensional
};

namespace detail {

inline cudaError_t encode_tensor_map(CUtensorMap* map,
                                     CUtensorMapDataType type,
                                     int element_bytes,
                                     const void* array,
                                     const TensorShape& shape,
                                     int box_rows) {
  using Encode = decltype(&cuTensorMapEncodeTiled);
  static const Encode encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    const cudaError_t status = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function,
                                                                12000, cudaEnableDefault, &found);
    return status == cudaSuccess && found == cudaDriverEntryPointSuccess
               ? reinterpret_cast<Encode>(function)
               : nullptr;
  }();
  if (encode == nullptr) return cudaErrorNotSupported;
  const cuuint32_t rank = shape.planes == 0 ? 2 : 3;
  const cuuint64_t row_bytes = shape.columns * static_cast<uint64_t>(element_bytes);
  const cuuint64_t sizes[3] = {shape.columns, shape.rows, shape.planes};
  const cuuint64_t strides[2] = {row_bytes, row_bytes * shape.rows};
  const cuuint32_t box[3] = {static_cast<cuuint32_t>(128 / element_bytes),
                             static_cast<cuuint32_t>(box_rows), 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  const CUresult result =
      encode(map, type, rank, const_cast<void*>(array), sizes, strides, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace detail

// A map of boxes of box_rows rows (at most 256) by 128 bytes of columns: 64 bf16, or 128 codes of
// one byte. The array starts at a multiple of 16 bytes, and so does each of its rows.
inline cudaError_t make_tensor_map(CUtensorMap* map,
                                   const __nv_bfloat16* array,
                                   const TensorShape& shape,
                                   int box_rows) {
  return detail::encode_tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, array, shape,
                                   box_rows);
}
inline cudaError_t make_tensor_map(CUtensorMap* map,
                                   const uint8_t* array,
                                   const TensorShape& shape,
                                   int box_rows) {
  return detail::encode_tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, array, shape, box_rows);
}

// One thread starts the copy of the box whose first element is (row, column); its bytes count on
// `barrier`, whose phase must expect them: the whole box, also where it reaches out of the array.
__device__ __forceinline__ void tma_load(
    void* shared, const CUtensorMap& map, int column, int row, uint64_t* barrier) {
  MOE_SM90(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier))
      : "memory");
}
__device__ __forceinline__ void tma_load(
    void* shared, const CUtensorMap& map, int column, int row, int plane, uint64_t* barrier) {
  MOE_SM90(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4}], [%5];" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(row), "r"(plane), "r"(shared_address(barrier))
      : "memory");
}

// The same box into every block of the cluster whose bit is set in `ranks`, at the same place in
// its shared memory; each counts the bytes on its own barrier, also at the same place.
__device__ __forceinline__ void tma_load_multicast(void* shared,
                                                   const CUtensorMap& map,
                                                   int column,
                                                   int row,
                                                   int plane,
                                                   uint64_t* barrier,
                                                   uint16_t ranks) {
  MOE_SM90(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(row), "r"(plane), "r"(shared_address(barrier)), "h"(ranks)
      : "memory");
}

__device__ __forceinline__ void tma_load_multicast(
    void* shared, const CUtensorMap& map, int column, int row, uint64_t* barrier, uint16_t ranks) {
  MOE_SM90(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(shared_address(shared)),
      "l"(&map), "r"(column), "r"(row), "r"(shared_address(barrier)), "h"(ranks)
      : "memory");
}

// One thread stores the box, or adds it to what is there (bf16: each sum rounded, in no fixed
// order). It belongs to the thread's open bulk group.
__device__ __forceinline__ void tma_store(const CUtensorMap& map,
                                          const void* shared,
                                          int column,
                                          int row) {
  MOE_SM90("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(
               &map),
           "r"(shared_address(shared)), "r"(column), "r"(row)
           : "memory");
}
__device__ __forceinline__ void tma_reduce_add(const CUtensorMap& map,
                                               const void* shared,
                                               int column,
                                               int row) {
  MOE_SM90(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%2, %3}], "
      "[%1];" ::"l"(&map),
      "r"(shared_address(shared)), "r"(column), "r"(row)
      : "memory");
}
// Closes the thread's bulk group; waits until at most N groups are still to be read from shared
// memory (the buffer may then be written again), or still to be written.
__device__ __forceinline__ void bulk_commit() {
  MOE_SM90("cp.async.bulk.commit_group;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void bulk_wait_read() {
  MOE_SM90("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}
template <int N>
__device__ __forceinline__ void bulk_wait() {
  MOE_SM90("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}

// ---- Warps and blocks.

// True in one thread of the converged warp, the same one every time.
__device__ __forceinline__ bool elect_one() {
  uint32_t elected = 0;
  MOE_SM90("{\n.reg .pred one;\nelect.sync _|one, 0xffffffff;\nselp.u32 %0, 1, 0, one;\n}"
           : "=r"(elected)::"memory");
  return elected != 0;
}

// Barriers 1 to 15 of the block (0 is __syncthreads), for `threads` of its threads, whole warps.
__device__ __forceinline__ void named_barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void named_barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Gives registers of this warpgroup back (dec), or waits for more (inc). N registers a thread, a
// multiple of 8 from 24 to 256; all warps of the warpgroup. The sums over the block's warpgroups
// must fit what the block was launched with.
template <int N>
__device__ __forceinline__ void setmaxnreg_dec() {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg wants a multiple of 8, 24 to 256");
  MOE_SM90("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N>
__device__ __forceinline__ void setmaxnreg_inc() {
  static_assert(N % 8 == 0 && N >= 24 && N <= 256, "setmaxnreg wants a multiple of 8, 24 to 256");
  MOE_SM90("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

// All threads of all blocks of the cluster meet; what they wrote before is seen after.
__device__ __forceinline__ void cluster_sync() {
  MOE_SM90("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
               : "memory");
}
// This block's place in its cluster.
__device__ __forceinline__ int cluster_rank() {
  uint32_t rank = 0;
  MOE_SM90("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
// Stores a value at the same place in the shared memory of block `rank`; its 4 bytes count on that
// block's barrier, whose phase must expect them. Only in a kernel launched with clusters.
__device__ __forceinline__ void store_async_remote(int* place,
                                                   int value,
                                                   uint64_t* barrier,
                                                   int rank) {
  MOE_SM90(
      "{\n.reg .b32 place, barrier;\nmapa.shared::cluster.u32 place, %0, %3;\n"
      "mapa.shared::cluster.u32 barrier, %2, %3;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [place], %1, [barrier];\n}" ::
          "r"(shared_address(place)),
      "r"(value), "r"(shared_address(barrier)), "r"(rank)
      : "memory");
}

// ---- Dependent launches: a kernel that was launched with LaunchOptions::programmatic may start
// before the one in front of it ends. It must not touch what that one writes before wait(). The one
// in front says launch_dependents() when the next may take free multiprocessors.
__device__ __forceinline__ void griddepcontrol_wait() {
  MOE_SM90("griddepcontrol.wait;" ::: "memory");
}
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
  MOE_SM90("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace moe
