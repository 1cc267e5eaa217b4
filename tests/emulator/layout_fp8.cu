// 8-bit floating point: conversions, and which lane of mma holds which code.
#include <cuda_fp8.h>
#include <drills/ptx.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "layout.h"

namespace layout {

namespace {

// ---- The formats. `code` without its sign bit.

float e4m3_value(unsigned code) {
  const int exponent = static_cast<int>(code >> 3 & 15u);
  const int mantissa = static_cast<int>(code & 7u);
  if ((code & 0x7fu) == 0x7fu) return NAN;
  const float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                    : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80u) != 0 ? -value : value;
}

// Round to nearest even, saturating; NaN gives 0x7f.
unsigned nearest_e4m3(float value) {
  if (std::isnan(value)) return 0x7f;
  const unsigned sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= 448.0) return sign | 0x7e;
  unsigned best = 0;
  for (unsigned code = 1; code <= 0x7e; ++code) {
    const double now = std::fabs(static_cast<double>(e4m3_value(code)) - magnitude);
    const double before = std::fabs(static_cast<double>(e4m3_value(best)) - magnitude);
    if (now < before || (now <= before && code % 2 == 0)) best = code;
  }
  return sign | best;
}

uint32_t bits_of(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

__global__ void widen_kernel(uint32_t* out) {
  __nv_fp8_e4m3 code;
  code.__x = static_cast<unsigned char>(threadIdx.x);
  out[threadIdx.x] = __float_as_uint(static_cast<float>(code));
}

void check_widen() {
  const auto out = run(widen_kernel, 1, 256, 256);
  int wrong = 0;
  for (unsigned code = 0; code < 256; ++code) {
    const float want = e4m3_value(code);
    const bool is_nan = (out[code] & 0x7fffffffu) > 0x7f800000u;
    wrong += (std::isnan(want) ? !is_nan : out[code] != bits_of(want)) ? 1 : 0;
  }
  report("e4m3 to float, all codes", wrong);
}

// Bits of bf16 and, below them, nothing or the bits next to it.
__host__ __device__ uint32_t float_bits(unsigned code, int i) {
  constexpr uint32_t kTails[3] = {0, 1, 0xffff};
  return code << 16 | kTails[i];
}

__global__ void narrow_kernel(uint32_t* out) {
  const unsigned code = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < 3; ++i) {
    const float value = __uint_as_float(float_bits(code, i));
    const unsigned one = __nv_cvt_float_to_fp8(value, __NV_SATFINITE, __NV_E4M3);
    const unsigned four = __nv_fp8x4_e4m3(make_float4(0.0f, value, -value, 1.0f)).__x;
    out[code * 3 + static_cast<unsigned>(i)] = one | four >> 8 << 8;
  }
}

void check_narrow() {
  constexpr unsigned kCodes = 65536;
  const auto out = run(narrow_kernel, kCodes / 256, 256, kCodes * 3);
  int wrong[2] = {};
  for (unsigned code = 0; code < kCodes; ++code) {
    for (int i = 0; i < 3; ++i) {
      float value = 0.0f;
      const uint32_t bits = float_bits(code, i);
      std::memcpy(&value, &bits, sizeof value);
      const unsigned want = nearest_e4m3(value);
      const uint32_t got = out[code * 3 + static_cast<unsigned>(i)];
      wrong[0] += (got & 0xffu) != want ? 1 : 0;
      wrong[1] += got >> 8 != (0x380000u | nearest_e4m3(-value) << 8 | want) ? 1 : 0;
    }
  }
  report("float to e4m3, all bf16 values and their neighbours", wrong[0]);
  report("float4 to e4m3x4", wrong[1]);
}

// ---- mma

__host__ __device__ unsigned a_code(int row, int column, bool with_nan) {
  if (with_nan && row == 3 && column == 17) return 0x7f;
  const auto code = static_cast<unsigned>(row * 32 + column) * 37u % 64u;
  return code | (static_cast<unsigned>(row + column) % 2u) << 7;
}
__host__ __device__ unsigned b_code(int row, int column) {
  const auto code = static_cast<unsigned>(row * 8 + column) * 29u % 64u;
  return code | (static_cast<unsigned>(row) % 2u) << 7;
}
__host__ __device__ float c_value(int row, int column) {
  return static_cast<float>(row * 8 + column) / 64.0f;
}

// Codes 0 to 63 are multiples of 2^-9 below 2; `mask` chooses among them. Some GPUs sum the
// products with 14 bits.
__global__ void mma_kernel(float* out, unsigned mask, bool with_nan) {
  const int g = static_cast<int>(threadIdx.x) / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
  uint32_t a[4] = {};
  uint32_t b[2] = {};
  float d[4];
  for (int k = 0; k < 4; ++k) {
    for (int i = 0; i < 4; ++i) {
      const unsigned code = a_code(g + 8 * (i % 2), 4 * t + 16 * (i / 2) + k, with_nan);
      a[i] |= (code == 0x7f ? code : code & mask) << (8 * k);
    }
    for (int i = 0; i < 2; ++i) b[i] |= (b_code(4 * t + 16 * i + k, g) & mask) << (8 * k);
  }
  for (int i = 0; i < 4; ++i) d[i] = c_value(g + 8 * (i / 2), 2 * t + i % 2);
  moe::mma_m16n8k32_e4m3(d, a, b);
  for (int i = 0; i < 4; ++i) out[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = d[i];
}

void check_mma(const char* name, unsigned mask, bool with_nan) {
  const auto out = run(mma_kernel, 1, kLanes, 16 * 8, mask, with_nan);
  int wrong = 0;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      double sum = static_cast<double>(c_value(row, column));
      double size = std::fabs(sum);
      for (int k = 0; k < 32; ++k) {
        const unsigned code = a_code(row, k, with_nan);
        const double term = static_cast<double>(e4m3_value(code == 0x7f ? code : code & mask)) *
                            static_cast<double>(e4m3_value(b_code(k, column) & mask));
        sum += term;
        size += std::fabs(term);
      }
      const int place = row * 8 + column;
      const double got = static_cast<double>(out[static_cast<std::size_t>(place)]);
      const bool right = std::isnan(sum) ? std::isnan(got) : std::fabs(got - sum) <= size * 0x1p-12;
      wrong += right ? 0 : 1;
    }
  }
  report(name, wrong);
}

}  // namespace

void check_fp8() {
  check_widen();
  check_narrow();
  check_mma("mma.m16n8k32.e4m3", 0xffu, false);
  check_mma("mma.m16n8k32.e4m3, subnormal codes", 0x87u, false);
  check_mma("mma.m16n8k32.e4m3, one NaN", 0xffu, true);
}

}  // namespace layout
