// mbarriers, bulk tensor copies, stmatrix, named barriers and elect.
#include <cstring>

#include "layout_hopper.h"

namespace layout {

namespace {

constexpr int kThreads = 128;

// Where byte b of row r of a box lies, from the start of the tile.
__host__ __device__ int swizzled(int row, int byte) {
  return row * 128 + ((byte / 16) ^ (row % 8)) * 16 + byte % 16;
}

__device__ void init_one(uint64_t* barrier, int arrivals) {
  if (threadIdx.x == 0) {
    moe::mbarrier_init(barrier, arrivals);
    moe::mbarrier_init_fence();
  }
  __syncthreads();
}

// ---- Loads: the box at (plane, row, column), as bytes in the order of the array.

template <class T, int RANK>
__global__ void load_kernel(
    T* out, const __grid_constant__ CUtensorMap map, int column, int row, int plane, int box_rows) {
  unsigned char* tile = moe::dynamic_shared();
  auto* barrier = reinterpret_cast<uint64_t*>(tile + box_rows * 128);
  init_one(barrier, 1);
  if (threadIdx.x == 0) {
    moe::mbarrier_arrive_expect_tx(barrier, box_rows * 128);
    if constexpr (RANK == 2) moe::tma_load(tile, map, column, row, barrier);
    if constexpr (RANK == 3) moe::tma_load(tile, map, column, row, plane, barrier);
  }
  moe::mbarrier_wait(barrier, 0);
  constexpr int kColumns = 128 / static_cast<int>(sizeof(T));
  for (int i = static_cast<int>(threadIdx.x); i < box_rows * kColumns; i += kThreads) {
    const int place = swizzled(i / kColumns, i % kColumns * static_cast<int>(sizeof(T)));
    out[i] = *reinterpret_cast<const T*>(tile + place);
  }
}

// Value i of an array is i % 251 + 1: never zero, so that filling is seen; exact in bf16.
template <class T>
std::vector<T> counted(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = T(static_cast<float>(i % 251 + 1));
  return values;
}
template <>
std::vector<std::uint8_t> counted(std::size_t count) {
  std::vector<std::uint8_t> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i % 251 + 1);
  return values;
}

template <class T, int RANK>
int load_wrong(const moe::TensorShape& shape, int column, int row, int plane, int box_rows) {
  const std::size_t planes = shape.planes == 0 ? 1 : shape.planes;
  const auto values = counted<T>(shape.columns * shape.rows * planes);
  const Array<T> array(values);
  constexpr int kColumns = 128 / static_cast<int>(sizeof(T));
  const Array<T> out(std::vector<T>(static_cast<std::size_t>(box_rows * kColumns)));
  start({}, load_kernel<T, RANK>, 1, kThreads, static_cast<std::size_t>(box_rows) * 128 + 64,
        out.get(), map_of(array.get(), shape, box_rows), column, row, plane, box_rows);
  const auto got = out.host();
  int wrong = 0;
  for (int r = 0; r < box_rows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const int y = row + r;
      const int x = column + c;
      const bool inside = x >= 0 && x < static_cast<int>(shape.columns) && y >= 0 &&
                          y < static_cast<int>(shape.rows) && plane >= 0 &&
                          plane < static_cast<int>(planes);
      const std::size_t at =
          (static_cast<std::size_t>(plane) * shape.rows + static_cast<std::size_t>(y)) *
              shape.columns +
          static_cast<std::size_t>(x);
      const float want = inside ? static_cast<float>(values[at]) : 0.0f;
      wrong += static_cast<float>(got[static_cast<std::size_t>(r * kColumns + c)]) != want ? 1 : 0;
    }
  }
  return wrong;
}

void check_loads() {
  report("tma_load 2-D", load_wrong<__nv_bfloat16, 2>({192, 40}, 64, 8, 0, 16));
  report("tma_load 2-D, column 24", load_wrong<__nv_bfloat16, 2>({192, 40}, 24, 5, 0, 24));
  report("tma_load 2-D out of bounds", load_wrong<__nv_bfloat16, 2>({72, 40}, 64, 32, 0, 64));
  report("tma_load 2-D before the array", load_wrong<__nv_bfloat16, 2>({72, 40}, -8, -3, 0, 64));
  report("tma_load 2-D 256 rows", load_wrong<__nv_bfloat16, 2>({64, 300}, 0, 20, 0, 256));
  report("tma_load 2-D bytes", load_wrong<std::uint8_t, 2>({208, 24}, 96, 4, 0, 32));
  report("tma_load 3-D", load_wrong<__nv_bfloat16, 3>({128, 20, 3}, 64, 4, 2, 8));
  report("tma_load 3-D stays in its plane",
         load_wrong<__nv_bfloat16, 3>({128, 20, 3}, 0, 16, 1, 64));
  report("tma_load 3-D bytes", load_wrong<std::uint8_t, 3>({160, 12, 2}, 128, 8, 1, 16));
}

// ---- Stores and sums: each warp writes a tile, one thread stores it.

__global__ void store_kernel(const __grid_constant__ CUtensorMap map,
                             int column,
                             int row,
                             int add) {
  unsigned char* tile = moe::dynamic_shared();
  constexpr int kRows = 16;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * 64; i += kThreads) {
    *reinterpret_cast<__nv_bfloat16*>(tile + swizzled(i / 64, i % 64 * 2)) =
        __float2bfloat16(static_cast<float>(i % 119));
  }
  moe::fence_proxy_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (add != 0) {
      moe::tma_reduce_add(map, tile, column, row);
    } else {
      moe::tma_store(map, tile, column, row);
    }
    moe::bulk_commit();
    moe::bulk_wait_read<0>();
    moe::bulk_wait<0>();
  }
}

int store_wrong(int columns, int rows, int column, int row, bool add) {
  const auto count = static_cast<std::size_t>(columns * rows);
  const Array<__nv_bfloat16> array(std::vector<__nv_bfloat16>(count, __float2bfloat16(3.0f)));
  start({}, store_kernel, 1, kThreads, 16 * 128,
        map_of(array.get(), {static_cast<uint64_t>(columns), static_cast<uint64_t>(rows)}, 16),
        column, row, add ? 1 : 0);
  const auto got = array.host();
  int wrong = 0;
  for (int y = 0; y < rows; ++y) {
    for (int x = 0; x < columns; ++x) {
      float want = 3.0f;
      const bool inside = x >= column && x < column + 64 && y >= row && y < row + 16;
      if (inside) {
        const auto value = static_cast<float>(((y - row) * 64 + x - column) % 119);
        want = add ? want + value : value;
      }
      const float value = __bfloat162float(got[static_cast<std::size_t>(y * columns + x)]);
      wrong += value != want ? 1 : 0;
    }
  }
  return wrong;
}

void check_stores() {
  report("tma_store", store_wrong(128, 32, 64, 8, false));
  report("tma_store out of bounds", store_wrong(72, 20, 40, 10, false));
  report("tma_reduce_add", store_wrong(128, 32, 32, 4, true));
  report("tma_reduce_add out of bounds", store_wrong(72, 20, 40, 10, true));
}

// ---- mbarriers: a ring of two, with its phases; cp.async that arrives.

__global__ void phases_kernel(int* out) {
  auto* barriers = moe::dynamic_shared<uint64_t>();
  int* slots = reinterpret_cast<int*>(barriers + 4);
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0) {
    for (int i = 0; i < 2; ++i) {
      moe::mbarrier_init(&barriers[i], 32);
      moe::mbarrier_init(&barriers[2 + i], 96);
    }
    moe::mbarrier_init_fence();
  }
  __syncthreads();
  if (thread == 0) out[0] = moe::mbarrier_try_wait(&barriers[0], 1) ? 0 : 1;
  constexpr int kTurns = 7;
  for (int turn = 0; turn < kTurns; ++turn) {
    const int stage = turn % 2;
    const auto parity = static_cast<uint32_t>(turn / 2 % 2);
    if (thread < 32) {
      moe::mbarrier_wait(&barriers[2 + stage], parity ^ 1u);
      slots[stage * 32 + thread] = turn * 32 + thread;
      moe::mbarrier_arrive(&barriers[stage]);
    } else {
      moe::mbarrier_wait(&barriers[stage], parity);
      if (slots[stage * 32 + thread % 32] != turn * 32 + thread % 32) atomicAdd(&out[1], 1);
      moe::mbarrier_arrive(&barriers[2 + stage]);
    }
  }
}

__global__ void noinc_kernel(int* out, const int* from) {
  unsigned char* tile = moe::dynamic_shared();
  auto* barrier = reinterpret_cast<uint64_t*>(tile + kThreads * 16);
  init_one(barrier, kThreads);
  const int thread = static_cast<int>(threadIdx.x);
  moe::cp_async16(tile + thread * 16, from + thread * 4);
  moe::cp_async_mbarrier_arrive_noinc(barrier);
  moe::mbarrier_wait(barrier, 0);
  const int other = (thread + 37) % kThreads;
  for (int i = 0; i < 4; ++i) {
    out[thread * 4 + i] = reinterpret_cast<const int*>(tile)[other * 4 + i];
  }
}

void check_barriers() {
  const Array<int> out(std::vector<int>(2));
  start({}, phases_kernel, 1, kThreads, 1024, out.get());
  report("mbarrier phases", out.host()[0] + out.host()[1]);

  std::vector<int> values(kThreads * 4);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
  const Array<int> from(values);
  const Array<int> to(std::vector<int>(values.size()));
  start({}, noinc_kernel, 1, kThreads, kThreads * 16 + 64, to.get(),
        static_cast<const int*>(from.get()));
  int wrong = 0;
  for (int i = 0; i < kThreads * 4; ++i) {
    wrong += to.host()[static_cast<std::size_t>(i)] != (i + 37 * 4) % (kThreads * 4) ? 1 : 0;
  }
  report("cp.async arrives at an mbarrier", wrong);
}

// ---- stmatrix, named barriers, elect.

template <bool TRANSPOSED>
__global__ void stmatrix_kernel(unsigned short* out) {
  unsigned char* tile = moe::dynamic_shared();
  const int lane = static_cast<int>(threadIdx.x);
  uint32_t r[4];
  for (int j = 0; j < 4; ++j) {
    const uint32_t first = static_cast<uint32_t>(j * 64 + lane / 4 * 8 + lane % 4 * 2);
    r[j] = first | (first + 1) << 16;
  }
  unsigned char* row = tile + (lane * 5 + 3) % kLanes * 16;
  TRANSPOSED ? moe::stmatrix_x4_trans(row, r) : moe::stmatrix_x4(row, r);
  __syncwarp();
  for (int i = 0; i < 8; ++i) {
    out[lane * 8 + i] = reinterpret_cast<const unsigned short*>(tile)[lane * 8 + i];
  }
}

// Warps 0 and 1 meet at barrier 1; warp 2 arrives at barrier 2, for which warp 3 waits.
__global__ void named_kernel(int* out) {
  int* shared = moe::dynamic_shared<int>();
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < 64) {
    shared[thread] = thread;
    moe::named_barrier_sync(1, 64);
    out[thread] = shared[63 - thread];
  } else if (thread < 96) {
    shared[thread] = thread;
    moe::named_barrier_arrive(2, 64);
  } else {
    moe::named_barrier_sync(2, 64);
    out[thread] = shared[thread - 32];
  }
}

__global__ void elect_kernel(int* out) {
  const bool first = moe::elect_one();
  const bool again = moe::elect_one();
  if (first) atomicAdd(&out[0], 1);
  if (first != again) atomicAdd(&out[1], 1);
}

// Element i of row `row` of the four matrices, one below the other, is row * 8 + i; transposed it
// is what stood at (i, row) of the same matrix.
template <bool TRANSPOSED>
void check_stmatrix(const char* name) {
  const Array<unsigned short> stored(std::vector<unsigned short>(kLanes * 8));
  start({}, stmatrix_kernel<TRANSPOSED>, 1, kLanes, 1024, stored.get());
  int wrong = 0;
  for (int row = 0; row < kLanes; ++row) {
    for (int i = 0; i < 8; ++i) {
      const auto got = stored.host()[static_cast<std::size_t>((row * 5 + 3) % kLanes * 8 + i)];
      const int want = TRANSPOSED ? row / 8 * 64 + i * 8 + row % 8 : row * 8 + i;
      wrong += got != want ? 1 : 0;
    }
  }
  report(name, wrong);
}

void check_warps() {
  check_stmatrix<false>("stmatrix.x4");
  check_stmatrix<true>("stmatrix.x4.trans");

  const Array<int> named(std::vector<int>(128));
  start({}, named_kernel, 1, 128, 1024, named.get());
  int wrong = 0;
  for (int i = 0; i < 128; ++i) {
    const int want = i < 64 ? 63 - i : i < 96 ? 0 : i - 32;
    wrong += named.host()[static_cast<std::size_t>(i)] != want ? 1 : 0;
  }
  report("named barriers", wrong);

  const Array<int> elected(std::vector<int>(2));
  start({}, elect_kernel, 1, 128, 0, elected.get());
  report("elect_one", (elected.host()[0] != 4 ? 1 : 0) + elected.host()[1]);
}

}  // namespace

void check_bulk() {
  check_loads();
  check_stores();
  check_barriers();
  check_warps();
}

}  // namespace layout
