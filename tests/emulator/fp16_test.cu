// Halves and the atomics of two bytes.
#include "emulator_test.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

namespace {

using Fp16Test = EmulatorTest;

__half half_of(unsigned bits) {
  return __ushort_as_half(static_cast<unsigned short>(bits));
}

TEST_F(Fp16Test, EveryHalfComesBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const __half value = half_of(bits);
    const unsigned want = __hisnan(value) ? 0x7fffu : bits;
    ASSERT_EQ(__half_as_ushort(__float2half(__half2float(value))), want) << bits;
  }
}

// Between neighbours the middle goes to the even one, and whatever is nearer to the nearer one.
TEST_F(Fp16Test, RoundsToNearestEven) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const float low = __half2float(half_of(bits));
    const float high = __half2float(half_of(bits + 1));
    const float middle = (low + high) / 2;
    ASSERT_EQ(__half_as_ushort(__half(middle)), bits % 2 == 0 ? bits : bits + 1) << bits;
    ASSERT_EQ(__half_as_ushort(__half(std::nextafterf(middle, low))), bits);
    ASSERT_EQ(__half_as_ushort(__half(std::nextafterf(middle, high))), bits + 1);
  }
  EXPECT_EQ(__half_as_ushort(__half(65519.0f)), 0x7bff);
  EXPECT_EQ(__half_as_ushort(__half(65520.0f)), 0x7c00);
  EXPECT_EQ(__half_as_ushort(__half(-1e30f)), 0xfc00);
}

TEST_F(Fp16Test, ArithmeticRoundsOnce) {
  const __half one = 1.0f;
  const __half small = half_of(1);
  EXPECT_EQ(__half_as_ushort(one + small), __half_as_ushort(one));
  EXPECT_EQ(__half2float(__half(3.0f) * __half(0.5f)), 1.5f);
  EXPECT_EQ(__half2float(-__half(2.0f) / __half(8.0f)), -0.25f);
  EXPECT_EQ(__half22float2(__hadd2(make_half2(1.0f, 2.0f), make_half2(3.0f, 4.0f))).y, 6.0f);
}

__global__ void count(__nv_bfloat16* bf16, __nv_bfloat162* pair, __half* half, float* single) {
  atomicAdd(bf16, __float2bfloat16(1.0f));
  atomicAdd(pair, __floats2bfloat162_rn(1.0f, 2.0f));
  atomicAdd(half, __float2half(1.0f));
  atomicAdd(single, 0.5f);
}

TEST_F(Fp16Test, SmallAtomicsLoseNothing) {
  DeviceArray<__nv_bfloat16> bf16(std::vector<__nv_bfloat16>(2, 0.0f));
  DeviceArray<__nv_bfloat162> pair(std::vector<__nv_bfloat162>(1, {0.0f, 0.0f}));
  DeviceArray<__half> half(std::vector<__half>(2, 0.0f));
  DeviceArray<float> single(1);
  ASSERT_EQ(moe::launch(count, 4, 32, 0, nullptr, bf16.get() + 1, pair.get(), half.get() + 1,
                        single.get()),
            cudaSuccess);
  EXPECT_EQ(__bfloat162float(bf16.host()[1]), 128.0f);
  EXPECT_EQ(__bfloat162float(bf16.host()[0]), 0.0f);
  EXPECT_EQ(__bfloat1622float2(pair.host()[0]).x, 128.0f);
  EXPECT_EQ(__bfloat1622float2(pair.host()[0]).y, 256.0f);
  EXPECT_EQ(__half2float(half.host()[1]), 128.0f);
  EXPECT_EQ(single.host()[0], 64.0f);
}

__global__ void fast_math(float* out, const float4* in, long long* ticks) {
  const float4 four = __ldg(in);
  out[0] = __expf(four.x) + __fdividef(four.y, 2.0f) + __frcp_rn(four.z) + __tanhf(0.0f);
  __stcs(&out[1], __ldcg(&in->w));
  const long long start = clock64();
  *ticks = clock64() - start;
}

TEST_F(Fp16Test, FastMathAndClockAreRepeatable) {
  DeviceArray<float4> in(std::vector<float4>{{0.0f, 3.0f, 4.0f, 7.0f}});
  DeviceArray<float> out(2);
  DeviceArray<long long> ticks(1);
  long long before = 0;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(moe::launch(fast_math, 1, 1, 0, nullptr, out.get(),
                          static_cast<const float4*>(in.get()), ticks.get()),
              cudaSuccess);
    EXPECT_EQ(out.host(), (std::vector<float>{2.75f, 7.0f}));
    EXPECT_GT(ticks.host()[0], 0);
    if (i == 1) EXPECT_EQ(ticks.host()[0], before);
    before = ticks.host()[0];
  }
}

}  // namespace
