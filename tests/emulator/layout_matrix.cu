// ldmatrix and mma: which lane holds which element.
#include <drills/ptx.h>

#include <cstdint>
#include <cstring>

#include "layout.h"

namespace layout {

namespace {

// ---- ldmatrix

// Lane i gives the address of this row: any order of rows must do.
__host__ __device__ int row_of_lane(int lane) {
  return (lane * 5 + 3) % kLanes;
}

template <int COUNT, bool TRANSPOSED>
__global__ void ldmatrix_kernel(uint32_t* out) {
  __shared__ __align__(16) unsigned short rows[kLanes][8];
  const int lane = static_cast<int>(threadIdx.x);
  for (int c = 0; c < 8; ++c) rows[lane][c] = static_cast<unsigned short>(lane * 8 + c);
  __syncwarp();
  uint32_t r[COUNT];
  const void* row = rows[row_of_lane(lane)];
  if constexpr (COUNT == 1 && !TRANSPOSED) moe::ldmatrix_x1(r, row);
  if constexpr (COUNT == 2 && !TRANSPOSED) moe::ldmatrix_x2(r, row);
  if constexpr (COUNT == 4 && !TRANSPOSED) moe::ldmatrix_x4(r, row);
  if constexpr (COUNT == 1 && TRANSPOSED) moe::ldmatrix_x1_trans(r, row);
  if constexpr (COUNT == 2 && TRANSPOSED) moe::ldmatrix_x2_trans(r, row);
  if constexpr (COUNT == 4 && TRANSPOSED) moe::ldmatrix_x4_trans(r, row);
  for (int j = 0; j < COUNT; ++j) out[lane * COUNT + j] = r[j];
}

template <int COUNT, bool TRANSPOSED>
void check_ldmatrix(const char* name) {
  const auto out = run(ldmatrix_kernel<COUNT, TRANSPOSED>, 1, kLanes, kLanes * COUNT);
  const auto element = [](int matrix, int row, int column) {
    return static_cast<unsigned>(row_of_lane(matrix * 8 + row) * 8 + column);
  };
  int wrong = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int j = 0; j < COUNT; ++j) {
      const int g = lane / 4;
      const int t = lane % 4;
      const unsigned low = TRANSPOSED ? element(j, 2 * t, g) : element(j, g, 2 * t);
      const unsigned high = TRANSPOSED ? element(j, 2 * t + 1, g) : element(j, g, 2 * t + 1);
      wrong += out[static_cast<std::size_t>(lane * COUNT + j)] != (low | high << 16) ? 1 : 0;
    }
  }
  report(name, wrong);
}

// ---- mma

__host__ __device__ float a_value(int row, int column) {
  return static_cast<float>((row * 16 + column) * 37 % 17 - 8) / 8.0f;
}
__host__ __device__ float b_value(int row, int column) {
  return static_cast<float>((row * 8 + column) * 29 % 19 - 9) / 8.0f;
}
__host__ __device__ float c_value(int row, int column) {
  return static_cast<float>(row * 8 + column);
}

__device__ uint32_t pack(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  uint32_t word;
  memcpy(&word, &pair, sizeof word);
  return word;
}

__global__ void mma_kernel(float* out) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  uint32_t a[4];
  uint32_t b[2];
  float d[4];
  for (int i = 0; i < 4; ++i) {
    const int row = g + 8 * (i % 2);
    const int column = 2 * t + 8 * (i / 2);
    a[i] = pack(a_value(row, column), a_value(row, column + 1));
  }
  for (int i = 0; i < 2; ++i) {
    const int row = 2 * t + 8 * i;
    b[i] = pack(b_value(row, g), b_value(row + 1, g));
  }
  for (int i = 0; i < 4; ++i) d[i] = c_value(g + 8 * (i / 2), 2 * t + i % 2);
  moe::mma_m16n8k16(d, a, b);
  for (int i = 0; i < 4; ++i) out[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}

// All sums are exact in fp32, so their order doesn't matter.
void check_mma() {
  const auto out = run(mma_kernel, 1, kLanes, 16 * 8);
  int wrong = 0;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = c_value(row, column);
      for (int k = 0; k < 16; ++k) sum += a_value(row, k) * b_value(k, column);
      wrong += out[static_cast<std::size_t>(row * 8 + column)] != sum ? 1 : 0;
    }
  }
  report("mma.m16n8k16", wrong);
}

}  // namespace

void check_matrices() {
  check_ldmatrix<1, false>("ldmatrix.x1");
  check_ldmatrix<2, false>("ldmatrix.x2");
  check_ldmatrix<4, false>("ldmatrix.x4");
  check_ldmatrix<1, true>("ldmatrix.x1.trans");
  check_ldmatrix<2, true>("ldmatrix.x2.trans");
  check_ldmatrix<4, true>("ldmatrix.x4.trans");
  check_mma();
}

}  // namespace layout
