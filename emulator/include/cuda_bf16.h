// Stands in for CUDA's header of the same name: bfloat16, bit for bit as CUDA rounds it.
#pragma once

#include <emulator/atomics.h>
#include <emulator/device_math.h>
#include <emulator/warp.h>
#include <vector_types.h>

#include <cstdint>
#include <cstring>

namespace emulator {

// Round to nearest even; every NaN becomes 0x7fff.
inline unsigned short bfloat16_bits(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// A double as a float rounded to odd: a second rounding, to bfloat16, is then the right one.
inline float round_to_odd(double value) {
  float rounded = static_cast<float>(value);
  if (static_cast<double>(rounded) == value || value != value) return rounded;
  std::uint32_t bits = __float_as_uint(rounded);
  if (fabs(static_cast<double>(rounded)) > fabs(value)) --bits;
  return __uint_as_float(bits | 1u);
}

}  // namespace emulator

struct __nv_bfloat16_raw {
  unsigned short x;
};

struct __nv_bfloat16 {
  __nv_bfloat16() = default;
  __nv_bfloat16(float value) : bits_(emulator::bfloat16_bits(value)) {}
  __nv_bfloat16(double value) : __nv_bfloat16(emulator::round_to_odd(value)) {}
  __nv_bfloat16(int value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(unsigned value) : __nv_bfloat16(static_cast<double>(value)) {}
  __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits_(raw.x) {}

  operator float() const { return __uint_as_float(static_cast<std::uint32_t>(bits_) << 16); }
  operator __nv_bfloat16_raw() const { return {bits_}; }

  __nv_bfloat16& operator=(float value) { return *this = __nv_bfloat16(value); }

 private:
  unsigned short bits_;
};
using nv_bfloat16 = __nv_bfloat16;

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  __nv_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) : x(low), y(high) {}
};
using nv_bfloat162 = __nv_bfloat162;

// ---- Conversions.
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) {
  return __nv_bfloat16_raw(a).x;
}
inline short __bfloat16_as_short(__nv_bfloat16 a) {
  return static_cast<short>(__bfloat16_as_ushort(a));
}
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
inline __nv_bfloat16 __short_as_bfloat16(short bits) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(bits));
}
inline float __bfloat162float(__nv_bfloat16 a) {
  return static_cast<float>(a);
}
inline __nv_bfloat16 __float2bfloat16(float a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __float2bfloat16_rn(float a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __float2bfloat16_rz(float a) {
  const std::uint32_t bits = __float_as_uint(a);
  if (a != a) return __ushort_as_bfloat16(0x7fff);
  return __ushort_as_bfloat16(static_cast<unsigned short>(bits >> 16));
}
inline __nv_bfloat16 __double2bfloat16(double a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __int2bfloat16_rn(int a) {
  return __nv_bfloat16(a);
}
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned a) {
  return __nv_bfloat16(a);
}
inline int __bfloat162int_rn(__nv_bfloat16 a) {
  return __float2int_rn(a);
}
inline int __bfloat162int_rz(__nv_bfloat16 a) {
  return __float2int_rz(a);
}
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return {x, y};
}
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return {x, y};
}
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) {
  return {a, a};
}
inline __nv_bfloat162 __float2bfloat162_rn(float a) {
  return {__nv_bfloat16(a), __nv_bfloat16(a)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 a) {
  return __floats2bfloat162_rn(a.x, a.y);
}
inline float2 __bfloat1622float2(__nv_bfloat162 a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
inline float __low2float(__nv_bfloat162 a) {
  return static_cast<float>(a.x);
}
inline float __high2float(__nv_bfloat162 a) {
  return static_cast<float>(a.y);
}
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) {
  return a.x;
}
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) {
  return a.y;
}

// ---- Arithmetic. float has more than twice the precision: for + - * / and the square root a
// second rounding changes nothing.
inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) + static_cast<float>(b));
}
inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) - static_cast<float>(b));
}
inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) * static_cast<float>(b));
}
inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) / static_cast<float>(b));
}
// One rounding: the product is exact in double, and the sum is rounded to odd there.
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  const double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
  const double addend = static_cast<double>(static_cast<float>(c));
  double sum = product + addend;
  const double part = sum - product;
  const double error = (product - (sum - part)) + (addend - part);
  if ((error > 0 || error < 0) && (__double_as_longlong(sum) & 1) == 0) {
    sum = nextafter(sum, error > 0 ? HUGE_VAL : -HUGE_VAL);
  }
  return __nv_bfloat16(sum);
}
inline __nv_bfloat16 __hneg(__nv_bfloat16 a) {
  return a != a
             ? __ushort_as_bfloat16(0x7fff)
             : __ushort_as_bfloat16(static_cast<unsigned short>(__bfloat16_as_ushort(a) ^ 0x8000u));
}
inline __nv_bfloat16 __habs(__nv_bfloat16 a) {
  return a != a
             ? __ushort_as_bfloat16(0x7fff)
             : __ushort_as_bfloat16(static_cast<unsigned short>(__bfloat16_as_ushort(a) & 0x7fffu));
}
inline bool __hisnan(__nv_bfloat16 a) {
  return (__bfloat16_as_ushort(a) & 0x7fffu) > 0x7f80u;
}
inline int __hisinf(__nv_bfloat16 a) {
  const unsigned bits = __bfloat16_as_ushort(a);
  return bits == 0x7f80u ? 1 : bits == 0xff80u ? -1 : 0;
}
// The number if only one argument is NaN; +0 counts as larger than -0.
inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  const float x = a;
  const float y = b;
  if (x == y) return (__bfloat16_as_ushort(a) & 0x8000u) != 0 ? b : a;
  return __nv_bfloat16(fmaxf(x, y));
}
inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
  const float x = a;
  const float y = b;
  if (x == y) return (__bfloat16_as_ushort(a) & 0x8000u) != 0 ? a : b;
  return __nv_bfloat16(fminf(x, y));
}
inline __nv_bfloat16 hexp(__nv_bfloat16 a) {
  return __nv_bfloat16(expf(a));
}
inline __nv_bfloat16 hlog(__nv_bfloat16 a) {
  return __nv_bfloat16(logf(a));
}
inline __nv_bfloat16 hsqrt(__nv_bfloat16 a) {
  return __nv_bfloat16(sqrtf(a));
}
inline __nv_bfloat16 hrsqrt(__nv_bfloat16 a) {
  return __nv_bfloat16(rsqrtf(a));
}
inline __nv_bfloat16 hrcp(__nv_bfloat16 a) {
  return __nv_bfloat16(1.0f / static_cast<float>(a));
}

inline bool __heq(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
inline bool __hne(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) < static_cast<float>(b) ||
         static_cast<float>(a) > static_cast<float>(b);
}
inline bool __hlt(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
inline bool __hle(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) <= static_cast<float>(b);
}
inline bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __hlt(b, a);
}
inline bool __hge(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __hle(b, a);
}

inline __nv_bfloat16 operator+(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hadd(a, b);
}
inline __nv_bfloat16 operator-(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hsub(a, b);
}
inline __nv_bfloat16 operator*(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hmul(a, b);
}
inline __nv_bfloat16 operator/(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hdiv(a, b);
}
inline __nv_bfloat16 operator-(const __nv_bfloat16& a) {
  return __hneg(a);
}
inline __nv_bfloat16& operator+=(__nv_bfloat16& a, const __nv_bfloat16& b) {
  return a = a + b;
}
inline __nv_bfloat16& operator-=(__nv_bfloat16& a, const __nv_bfloat16& b) {
  return a = a - b;
}
inline __nv_bfloat16& operator*=(__nv_bfloat16& a, const __nv_bfloat16& b) {
  return a = a * b;
}
inline __nv_bfloat16& operator/=(__nv_bfloat16& a, const __nv_bfloat16& b) {
  return a = a / b;
}
inline bool operator==(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __heq(a, b);
}
// CUDA's != is false with a NaN for __hne, and true for the operator.
inline bool operator!=(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return !__heq(a, b);
}
inline bool operator<(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hlt(a, b);
}
inline bool operator<=(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hle(a, b);
}
inline bool operator>(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hgt(a, b);
}
inline bool operator>=(const __nv_bfloat16& a, const __nv_bfloat16& b) {
  return __hge(a, b);
}

// ---- Pairs.
inline __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hadd(a.x, b.x), __hadd(a.y, b.y)};
}
inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hsub(a.x, b.x), __hsub(a.y, b.y)};
}
inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hmul(a.x, b.x), __hmul(a.y, b.y)};
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
inline __nv_bfloat162 __hmax2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
}
inline __nv_bfloat162 __hmin2(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
}
inline __nv_bfloat162 operator+(const __nv_bfloat162& a, const __nv_bfloat162& b) {
  return __hadd2(a, b);
}
inline __nv_bfloat162 operator-(const __nv_bfloat162& a, const __nv_bfloat162& b) {
  return __hsub2(a, b);
}
inline __nv_bfloat162 operator*(const __nv_bfloat162& a, const __nv_bfloat162& b) {
  return __hmul2(a, b);
}

// ---- Atomics. Each half of a pair is rounded by itself.
inline __nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value) {
  return emulator::atomic_change_2(address,
                                   [value](__nv_bfloat16 old) { return __hadd(old, value); });
}
inline __nv_bfloat162 atomicAdd(__nv_bfloat162* address, __nv_bfloat162 value) {
  return emulator::atomic_change(address,
                                 [value](__nv_bfloat162 old) { return __hadd2(old, value); });
}

// ---- Shuffles: both kinds travel in one word.
namespace emulator {

template <class T>
T shuffle_bfloat16(
    Operation operation, unsigned mask, T value, int operand, int width, Place place) {
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  shuffle(operation, mask, &word, 1, operand, width, place);
  std::memcpy(static_cast<void*>(&value), &word, sizeof value);
  return value;
}

}  // namespace emulator

#define EMULATOR_SHUFFLE(NAME, OPERATION, TYPE, OPERAND)                                        \
  inline TYPE NAME(unsigned mask, TYPE value, OPERAND operand, int width = 32, EMULATOR_HERE) { \
    return emulator::shuffle_bfloat16(emulator::Operation::OPERATION, mask, value,              \
                                      static_cast<int>(operand), width, place);                 \
  }

EMULATOR_SHUFFLE(__shfl_sync, kShuffle, __nv_bfloat16, int)
EMULATOR_SHUFFLE(__shfl_up_sync, kShuffleUp, __nv_bfloat16, unsigned)
EMULATOR_SHUFFLE(__shfl_down_sync, kShuffleDown, __nv_bfloat16, unsigned)
EMULATOR_SHUFFLE(__shfl_xor_sync, kShuffleXor, __nv_bfloat16, int)
EMULATOR_SHUFFLE(__shfl_sync, kShuffle, __nv_bfloat162, int)
EMULATOR_SHUFFLE(__shfl_up_sync, kShuffleUp, __nv_bfloat162, unsigned)
EMULATOR_SHUFFLE(__shfl_down_sync, kShuffleDown, __nv_bfloat162, unsigned)
EMULATOR_SHUFFLE(__shfl_xor_sync, kShuffleXor, __nv_bfloat162, int)

#undef EMULATOR_SHUFFLE
