// 8-bit floating point: conversions against the definition of the formats, and the types' layout.
#include "emulator_test.h"

#include <cuda_fp8.h>
#include <drills/ptx.h>

#include <cmath>
#include <random>

namespace {

using Fp8Test = EmulatorTest;

// The value of a code, from the definition: e4m3 has a bias of 7, e5m2 one of 15.
double value_of(int code, bool e5m2) {
  const int mantissa_bits = e5m2 ? 2 : 3;
  const int bias = e5m2 ? 15 : 7;
  const int exponent = (code & 0x7f) >> mantissa_bits;
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const double sign = (code & 0x80) != 0 ? -1.0 : 1.0;
  if (e5m2 && exponent == 31) return mantissa == 0 ? sign * INFINITY : NAN;
  if (!e5m2 && (code & 0x7f) == 0x7f) return NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

// The nearest code by trying all: ties go to the even one, what is too large to the largest or
// beyond.
int nearest_code(double value, bool e5m2, bool saturate) {
  if (std::isnan(value)) return 0x7f;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const int largest = e5m2 ? 0x7b : 0x7e;
  const double magnitude = std::fabs(value);
  // The next code would be this far away; halfway to it is too far, unless that is a tie to an even
  // code.
  const double limit = value_of(largest, e5m2) + (e5m2 ? 4096.0 : 16.0);
  const bool overflow = e5m2 ? magnitude >= limit : magnitude > limit;
  if (overflow) return sign | (saturate ? largest : e5m2 ? 0x7c : 0x7f);
  int best = 0;
  for (int code = 1; code <= largest; ++code) {
    const double now = std::fabs(value_of(code, e5m2) - magnitude);
    const double before = std::fabs(value_of(best, e5m2) - magnitude);
    if (now < before || (now <= before && code % 2 == 0)) best = code;
  }
  return sign | best;
}

TEST_F(Fp8Test, EveryCodeHasItsValue) {
  for (int code = 0; code < 256; ++code) {
    __nv_fp8_e4m3 a;
    __nv_fp8_e5m2 b;
    a.__x = b.__x = static_cast<unsigned char>(code);
    const double want[2] = {value_of(code, false), value_of(code, true)};
    const double got[2] = {static_cast<double>(a), static_cast<double>(b)};
    for (int i = 0; i < 2; ++i) {
      if (std::isnan(want[i])) {
        EXPECT_TRUE(std::isnan(got[i])) << code;
      } else {
        EXPECT_EQ(got[i], want[i]) << code;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << code;
      }
    }
    EXPECT_EQ(__nv_cvt_fp8_to_halfraw(0x7f, __NV_E4M3).x, 0x7fff);
  }
}

TEST_F(Fp8Test, EveryBf16RoundsToTheNearestCode) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const __nv_bfloat16_raw raw = {static_cast<unsigned short>(bits)};
    const double value = static_cast<float>(__nv_bfloat16(raw));
    for (const bool e5m2 : {false, true}) {
      const auto format = e5m2 ? __NV_E5M2 : __NV_E4M3;
      ASSERT_EQ(__nv_cvt_bfloat16raw_to_fp8(raw, __NV_SATFINITE, format),
                nearest_code(value, e5m2, true))
          << bits;
      if (std::isnan(value) && e5m2) continue;
      ASSERT_EQ(__nv_cvt_bfloat16raw_to_fp8(raw, __NV_NOSAT, format),
                nearest_code(value, e5m2, false))
          << bits;
    }
  }
}

TEST_F(Fp8Test, FloatsNextToHalfwayValuesRoundAway) {
  for (int code = 0; code < 0x7e; ++code) {
    const double halfway = (value_of(code, false) + value_of(code + 1, false)) / 2;
    const auto tie = static_cast<float>(halfway);
    const auto up = std::nextafter(tie, INFINITY);
    const auto down = std::nextafter(tie, 0.0f);
    EXPECT_EQ(__nv_fp8_e4m3(tie).__x, code + code % 2) << code;
    EXPECT_EQ(__nv_fp8_e4m3(up).__x, code + 1) << code;
    EXPECT_EQ(__nv_fp8_e4m3(down).__x, code) << code;
    EXPECT_EQ(__nv_fp8_e4m3(-up).__x, 0x80 | (code + 1)) << code;
    // A double that is a float's tie and a little more must not be rounded twice.
    EXPECT_EQ(__nv_fp8_e4m3(halfway * (1.0 + 1e-15)).__x, code + 1) << code;
  }
}

// What public reports on overflow disagree about (F2, F3 of the list of cases).
TEST_F(Fp8Test, LargeValuesSaturateOrNot) {
  const float values[] = {448.0f, 464.0f, 464.1f, 1e30f, INFINITY, -INFINITY, NAN, 300.0f};
  const int saturated[] = {0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0x7f, 0x79};
  const int plain[] = {0x7e, 0x7e, 0x7f, 0x7f, 0x7f, 0xff, 0x7f, 0x79};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(__nv_cvt_float_to_fp8(values[i], __NV_SATFINITE, __NV_E4M3), saturated[i]);
    EXPECT_EQ(__nv_cvt_float_to_fp8(values[i], __NV_NOSAT, __NV_E4M3), plain[i]);
  }
}

TEST_F(Fp8Test, PairsAndFoursStoreTheFirstValueLow) {
  const __nv_fp8x4_e4m3 four(make_float4(1.0f, 2.0f, -0.0f, 448.0f));
  EXPECT_EQ(four.__x, 0x7e804038u);
  const float4 back = static_cast<float4>(four);
  EXPECT_EQ(back.x, 1.0f);
  EXPECT_EQ(back.y, 2.0f);
  EXPECT_TRUE(std::signbit(back.z));
  EXPECT_EQ(back.w, 448.0f);
  const __nv_fp8x2_e4m3 pair(make_float2(0.5f, -1.5f));
  EXPECT_EQ(pair.__x, 0xbc30);
  EXPECT_EQ(static_cast<float2>(pair).y, -1.5f);
  static_assert(sizeof four == 4 && alignof(__nv_fp8x4_e4m3) == 4);
  static_assert(sizeof pair == 2 && sizeof(__nv_fp8_e4m3) == 1);
}

__global__ void mma_without_a_lane() {
  float d[4] = {};
  const uint32_t a[4] = {};
  const uint32_t b[2] = {};
  if (threadIdx.x != 5) moe::mma_m16n8k32_e4m3(d, a, b);
}

TEST_F(Fp8Test, MmaNeedsTheWholeWarp) {
  EXPECT_NE(moe::launch(mma_without_a_lane, 1, 32, 0, nullptr), cudaSuccess);
  EXPECT_EQ(fault_kind(), "divergence");
  EXPECT_TRUE(holds(fault(), {"mma.m16n8k32.e4m3"}));
}

}  // namespace
