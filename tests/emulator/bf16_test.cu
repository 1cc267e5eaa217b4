// bfloat16 arithmetic against exact results, and its shuffles. Conversions: see layout.cu.
#include "emulator_test.h"

#include <cuda_bf16.h>

#include <cmath>
#include <random>

namespace {

using Bf16Test = EmulatorTest;

__nv_bfloat16 from_code(unsigned code) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(code));
}
unsigned code_of(__nv_bfloat16 value) {
  return __bfloat16_as_ushort(value);
}

TEST_F(Bf16Test, FmaRoundsOnce) {
  // 1 + 2^-8 lies halfway between two codes; the tiny addend decides, however small.
  const __nv_bfloat16 a = 1.0f + 1.0f / 16;
  const __nv_bfloat16 b = 1.0f + 1.0f / 16;  // a * b = 1 + 1/8 + 1/256, a halfway value
  EXPECT_EQ(code_of(__hfma(a, b, 0.0f)), code_of(__nv_bfloat16(1.125f)));
  EXPECT_EQ(code_of(__hfma(a, b, from_code(0x0001))), code_of(__nv_bfloat16(1.1328125f)));
  EXPECT_EQ(code_of(__hfma(a, b, from_code(0x8001))), code_of(__nv_bfloat16(1.125f)));
}

TEST_F(Bf16Test, DoublesRoundOnce) {
  const double halfway = 1.0 + 1.0 / 256;
  EXPECT_EQ(code_of(__double2bfloat16(halfway)), 0x3f80u);
  EXPECT_EQ(code_of(__double2bfloat16(halfway + 1e-12)), 0x3f81u);
  EXPECT_EQ(code_of(__double2bfloat16(halfway - 1e-12)), 0x3f80u);
  EXPECT_EQ(code_of(__double2bfloat16(1e300)), 0x7f80u);
  EXPECT_EQ(code_of(__double2bfloat16(-1e-300)), 0x8000u);
  EXPECT_EQ(code_of(__double2bfloat16(std::nan(""))), 0x7fffu);
  EXPECT_EQ(code_of(__nv_bfloat16(16777217)), code_of(__nv_bfloat16(16777216)));
}

TEST_F(Bf16Test, ArithmeticRoundsTheExactResult) {
  std::mt19937 random(1);
  for (int i = 0; i < 100000; ++i) {
    const __nv_bfloat16 a = from_code(random() & 0xffffu);
    const __nv_bfloat16 b = from_code(random() & 0xffffu);
    const double x = static_cast<float>(a);
    const double y = static_cast<float>(b);
    ASSERT_EQ(code_of(a * b), code_of(__double2bfloat16(x * y)));
    const bool comparable =
        std::fabs(x) > std::fabs(y) * 1e-9 && std::fabs(y) > std::fabs(x) * 1e-9;
    if (!comparable) continue;  // the double sum is rounded itself
    ASSERT_EQ(code_of(a + b), code_of(__double2bfloat16(x + y)));
    ASSERT_EQ(code_of(__hsub(a, b)), code_of(__double2bfloat16(x - y)));
  }
}

TEST_F(Bf16Test, MaximumSkipsNanAndOrdersZeros) {
  const __nv_bfloat16 nan = from_code(0x7fff);
  EXPECT_EQ(code_of(__hmax(nan, 2.0f)), code_of(__nv_bfloat16(2.0f)));
  EXPECT_EQ(code_of(__hmin(2.0f, nan)), code_of(__nv_bfloat16(2.0f)));
  EXPECT_EQ(code_of(__hmax(nan, nan)), 0x7fffu);
  EXPECT_EQ(code_of(__hmax(from_code(0x8000), from_code(0))), 0u);
  EXPECT_EQ(code_of(__hmin(from_code(0), from_code(0x8000))), 0x8000u);
  EXPECT_FALSE(__hne(nan, nan));
  EXPECT_TRUE(nan != nan);
  EXPECT_TRUE(__hisnan(nan));
  EXPECT_EQ(__hisinf(from_code(0xff80)), -1);
}

__global__ void shuffle(float* out) {
  const auto lane = static_cast<float>(threadIdx.x);
  const __nv_bfloat16 one = __shfl_xor_sync(0xffffffffu, __float2bfloat16(lane), 3);
  const __nv_bfloat162 two =
      __shfl_down_sync(0xffffffffu, __floats2bfloat162_rn(lane, lane + 100), 4u, 16);
  out[threadIdx.x] = __bfloat162float(one) + 1000 * __high2float(two);
}

TEST_F(Bf16Test, BothKindsShuffle) {
  DeviceArray<float> out(32);
  ASSERT_EQ(moe::launch(shuffle, 1, 32, 0, nullptr, out.get()), cudaSuccess);
  EXPECT_EQ(out.host()[1], 2 + 1000.0f * 105);
  EXPECT_EQ(out.host()[15], 12 + 1000.0f * 115);
}

}  // namespace
