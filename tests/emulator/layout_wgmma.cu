// wgmma: every width, both majors, A in registers, e4m3; tiles come by bulk copies.
#include <cuda_fp8.h>

#include <cstring>
#include <utility>

#include "layout_hopper.h"

namespace layout {

namespace {

using moe::Major;

constexpr int kM = 64;
constexpr int kThreads = 128;

template <int N>
__device__ void store(float* out, const float (&d)[N / 2]) {
  const int thread = static_cast<int>(threadIdx.x);
  const int row = thread / 32 * 16 + thread % 32 / 4;
  const int column = thread % 4 * 2;
  for (int j = 0; j < N / 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      for (int e = 0; e < 2; ++e) {
        out[(row + 8 * h) * N + 8 * j + column + e] = d[4 * j + 2 * h + e];
      }
    }
  }
}

template <int N>
__device__ void set_start(float (&d)[N / 2]) {
  for (int i = 0; i < N / 2; ++i) d[i] = static_cast<float>(i) + static_cast<float>(threadIdx.x);
}

__host__ __device__ float start_value(int n, int row, int column) {
  (void)n;
  const int thread = row / 16 * 32 + row % 8 * 4 + column % 8 / 2;
  const int i = column / 8 * 4 + row % 16 / 8 * 2 + column % 2;
  return static_cast<float>(i) + static_cast<float>(thread);
}

// One barrier, behind the tiles. All threads wait for `bytes` that thread 0 asks for in `load`.
template <class Load>
__device__ void load_and_wait(uint64_t* barrier, int bytes, Load load) {
  if (threadIdx.x == 0) {
    moe::mbarrier_init(barrier, 1);
    moe::mbarrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    moe::mbarrier_arrive_expect_tx(barrier, bytes);
    load();
  }
  moe::mbarrier_wait(barrier, 0);
}

// ---- K-major: a 64 x 64 and b N x 64, four steps of 16.

template <int N, bool REGISTERS>
__global__ void k_major_kernel(float* out,
                               const __grid_constant__ CUtensorMap a_map,
                               const __grid_constant__ CUtensorMap b_map,
                               const __nv_bfloat16* a) {
  unsigned char* a_tile = moe::dynamic_shared();
  unsigned char* b_tile = a_tile + kM * 128;
  auto* barrier = reinterpret_cast<uint64_t*>(b_tile + N * 128);
  load_and_wait(barrier, (kM + N) * 128, [&] {
    moe::tma_load(a_tile, a_map, 0, 0, barrier);
    moe::tma_load(b_tile, b_map, 0, 0, barrier);
  });
  float d[N / 2];
  set_start<N>(d);
  uint32_t fragments[4][4] = {};
  if (REGISTERS) {
    const int thread = static_cast<int>(threadIdx.x);
    for (int k = 0; k < 4; ++k) {
      for (int i = 0; i < 4; ++i) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * (i % 2);
        const int column = 16 * k + thread % 4 * 2 + 8 * (i / 2);
        memcpy(&fragments[k][i], a + row * 64 + column, 4);
      }
    }
  }
  const uint64_t a_descriptor = moe::wgmma_descriptor(a_tile);
  const uint64_t b_descriptor = moe::wgmma_descriptor(b_tile);
  moe::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if constexpr (REGISTERS) {
      moe::wgmma_bf16(d, fragments[k], b_descriptor + 2 * k, true);
    } else {
      moe::wgmma_bf16(d, a_descriptor + 2 * k, b_descriptor + 2 * k, true);
    }
  }
  moe::wgmma_commit();
  moe::wgmma_wait<0>();
  store<N>(out, d);
}

template <int N, bool REGISTERS>
int k_major_wrong() {
  const auto a = small_matrix(kM * 64, 1);
  const auto b = small_matrix(N * 64, 5);
  const Array<__nv_bfloat16> a_array(a);
  const Array<__nv_bfloat16> b_array(b);
  const Array<float> out(std::vector<float>(kM * N));
  start({}, k_major_kernel<N, REGISTERS>, 1, kThreads, (kM + N) * 128 + 64, out.get(),
        map_of(a_array.get(), {64, kM}, kM), map_of(b_array.get(), {64, N}, N),
        static_cast<const __nv_bfloat16*>(a_array.get()));
  const auto got = out.host();
  int wrong = 0;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < N; ++column) {
      float sum = start_value(N, row, column);
      for (int k = 0; k < 64; ++k) {
        sum += __bfloat162float(a[static_cast<std::size_t>(row * 64 + k)]) *
               __bfloat162float(b[static_cast<std::size_t>(column * 64 + k)]);
      }
      wrong += got[static_cast<std::size_t>(row * N + column)] != sum ? 1 : 0;
    }
  }
  return wrong;
}

// ---- MN-major: at is k x m, bt is k x n; boxes of 64 columns (8192 bytes for 64 rows of k).

template <int N, Major A>
__global__ void mn_major_kernel(float* out,
                                const __grid_constant__ CUtensorMap a_map,
                                const __grid_constant__ CUtensorMap b_map) {
  constexpr int kColumns = (N + 63) / 64;
  unsigned char* a_tile = moe::dynamic_shared();
  unsigned char* b_tile = a_tile + 64 * 128;
  auto* barrier = reinterpret_cast<uint64_t*>(b_tile + kColumns * 64 * 128);
  load_and_wait(barrier, (1 + kColumns) * 64 * 128, [&] {
    moe::tma_load(a_tile, a_map, 0, 0, barrier);
    for (int c = 0; c < kColumns; ++c) {
      moe::tma_load(b_tile + c * 64 * 128, b_map, 64 * c, 0, barrier);
    }
  });
  float d[N / 2];
  moe::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint64_t a = A == Major::kMN
                           ? moe::wgmma_descriptor(a_tile + k * 16 * 128, 64 * 128, 1024)
                           : moe::wgmma_descriptor(a_tile) + 2 * k;
    const uint64_t b = moe::wgmma_descriptor(b_tile + k * 16 * 128, 64 * 128, 1024);
    moe::wgmma_bf16<A, Major::kMN>(d, a, b, k != 0);
  }
  moe::wgmma_commit();
  moe::wgmma_wait<0>();
  store<N>(out, d);
}

template <int N, Major A>
int mn_major_wrong() {
  const auto a = small_matrix(64 * 64, 2);
  const auto b = small_matrix(64 * N, 6);
  const Array<__nv_bfloat16> a_array(a);
  const Array<__nv_bfloat16> b_array(b);
  const Array<float> out(std::vector<float>(kM * N));
  start({}, mn_major_kernel<N, A>, 1, kThreads, (1 + (N + 63) / 64) * 64 * 128 + 64, out.get(),
        map_of(a_array.get(), {64, 64}, 64), map_of(b_array.get(), {N, 64}, 64));
  const auto got = out.host();
  int wrong = 0;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < N; ++column) {
      float sum = 0;
      for (int k = 0; k < 64; ++k) {
        const int at = A == Major::kMN ? k * 64 + row : row * 64 + k;
        sum += __bfloat162float(a[static_cast<std::size_t>(at)]) *
               __bfloat162float(b[static_cast<std::size_t>(k * N + column)]);
      }
      wrong += got[static_cast<std::size_t>(row * N + column)] != sum ? 1 : 0;
    }
  }
  return wrong;
}

// ---- e4m3: a 64 x 128 and b N x 128 codes, four steps of 32.

template <int N>
__global__ void e4m3_kernel(float* out,
                            const __grid_constant__ CUtensorMap a_map,
                            const __grid_constant__ CUtensorMap b_map) {
  unsigned char* a_tile = moe::dynamic_shared();
  unsigned char* b_tile = a_tile + kM * 128;
  auto* barrier = reinterpret_cast<uint64_t*>(b_tile + N * 128);
  load_and_wait(barrier, (kM + N) * 128, [&] {
    moe::tma_load(a_tile, a_map, 0, 0, barrier);
    moe::tma_load(b_tile, b_map, 0, 0, barrier);
  });
  const uint64_t a = moe::wgmma_descriptor(a_tile);
  const uint64_t b = moe::wgmma_descriptor(b_tile);
  float d[N / 2];
  moe::wgmma_fence();
#pragma unroll
  for (int k = 0; k < 4; ++k) moe::wgmma_e4m3(d, a + 2 * k, b + 2 * k, k != 0);
  moe::wgmma_commit();
  moe::wgmma_wait<0>();
  store<N>(out, d);
}

std::vector<std::uint8_t> small_codes(std::size_t count, unsigned seed) {
  std::vector<std::uint8_t> codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const float value = small_value(static_cast<unsigned>(i) * 5 + seed);
    codes[i] = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
  }
  return codes;
}

float decode(std::uint8_t code) {
  __nv_fp8_e4m3 value;
  value.__x = code;
  return static_cast<float>(value);
}

template <int N>
int e4m3_wrong() {
  const auto a = small_codes(kM * 128, 3);
  const auto b = small_codes(N * 128, 7);
  const Array<std::uint8_t> a_array(a);
  const Array<std::uint8_t> b_array(b);
  const Array<float> out(std::vector<float>(kM * N));
  start({}, e4m3_kernel<N>, 1, kThreads, (kM + N) * 128 + 64, out.get(),
        map_of(a_array.get(), {128, kM}, kM), map_of(b_array.get(), {128, N}, N));
  const auto got = out.host();
  int wrong = 0;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < N; ++column) {
      float sum = 0;
      for (int k = 0; k < 128; ++k) {
        sum += decode(a[static_cast<std::size_t>(row * 128 + k)]) *
               decode(b[static_cast<std::size_t>(column * 128 + k)]);
      }
      wrong += got[static_cast<std::size_t>(row * N + column)] != sum ? 1 : 0;
    }
  }
  return wrong;
}

template <int... N>
void check_widths(std::integer_sequence<int, N...>) {
  report("wgmma k-major, all widths", (k_major_wrong<N, false>() + ...));
  report("wgmma a in registers, all widths", (k_major_wrong<N, true>() + ...));
  report("wgmma b mn-major, all widths", (mn_major_wrong<N, Major::kK>() + ...));
  report("wgmma a and b mn-major, all widths", (mn_major_wrong<N, Major::kMN>() + ...));
  report("wgmma e4m3, all widths", (e4m3_wrong<N>() + ...));
}

}  // namespace

void check_wgmma() {
  check_widths(std::integer_sequence<int, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112,
                                     120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 200, 208,
                                     216, 224, 232, 240, 248, 256>());
}

}  // namespace layout
