// Stands in for CUDA's header of the same name: the basics of half precision, bit for bit as CUDA
// rounds it.
#pragma once

#include <emulator/atomics.h>
#include <emulator/device_math.h>
#include <emulator/fp8.h>
#include <emulator/warp.h>
#include <vector_types.h>

#include <cstdint>
#include <cstring>

namespace emulator {

// Round to nearest even; every NaN becomes 0x7fff.
inline unsigned short half_bits_from_float(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  const auto sign = static_cast<unsigned>(bits >> 16 & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x47800000u) return static_cast<unsigned short>(sign | 0x7c00u);  // 2^16 and up
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
    const float scaled = __uint_as_float(magnitude) * 16777216.0f;
    return static_cast<unsigned short>(sign | static_cast<unsigned>(rintf(scaled)));
  }
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<unsigned short>(sign | rounded >> 13);
}

}  // namespace emulator

struct __half_raw {
  unsigned short x;
};

struct __half2_raw {
  unsigned short x, y;
};

struct __half {
  __half() = default;
  __half(float value) : bits_(emulator::half_bits_from_float(value)) {}
  __half(double value) : __half(static_cast<float>(value)) {}
  __half(int value) : __half(static_cast<float>(value)) {}
  __half(const __half_raw& raw) : bits_(raw.x) {}

  operator float() const { return emulator::half_bits_to_float(bits_); }
  operator __half_raw() const { return {bits_}; }

  __half& operator=(float value) { return *this = __half(value); }

 private:
  unsigned short bits_;
};
using half = __half;

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  __half2(__half low, __half high) : x(low), y(high) {}
};
using half2 = __half2;

// ---- Conversions.
inline unsigned short __half_as_ushort(__half a) {
  return __half_raw(a).x;
}
inline __half __ushort_as_half(unsigned short bits) {
  return __half(__half_raw{bits});
}
inline float __half2float(__half a) {
  return static_cast<float>(a);
}
inline __half __float2half(float a) {
  return __half(a);
}
inline __half __float2half_rn(float a) {
  return __half(a);
}
inline __half2 __halves2half2(__half x, __half y) {
  return {x, y};
}
inline __half2 make_half2(__half x, __half y) {
  return {x, y};
}
inline __half2 __half2half2(__half a) {
  return {a, a};
}
inline __half2 __float2half2_rn(float a) {
  return {__half(a), __half(a)};
}
inline __half2 __floats2half2_rn(float x, float y) {
  return {__half(x), __half(y)};
}
inline __half2 __float22half2_rn(float2 a) {
  return {__half(a.x), __half(a.y)};
}
inline float2 __half22float2(__half2 a) {
  return {static_cast<float>(a.x), static_cast<float>(a.y)};
}
inline float __low2float(__half2 a) {
  return static_cast<float>(a.x);
}
inline float __high2float(__half2 a) {
  return static_cast<float>(a.y);
}
inline __half __low2half(__half2 a) {
  return a.x;
}
inline __half __high2half(__half2 a) {
  return a.y;
}

// ---- Arithmetic. float has more than twice the precision: a second rounding changes nothing.
inline __half __hadd(__half a, __half b) {
  return __half(static_cast<float>(a) + static_cast<float>(b));
}
inline __half __hsub(__half a, __half b) {
  return __half(static_cast<float>(a) - static_cast<float>(b));
}
inline __half __hmul(__half a, __half b) {
  return __half(static_cast<float>(a) * static_cast<float>(b));
}
inline __half __hdiv(__half a, __half b) {
  return __half(static_cast<float>(a) / static_cast<float>(b));
}
inline __half __hneg(__half a) {
  return a != a ? __ushort_as_half(0x7fff)
                : __ushort_as_half(static_cast<unsigned short>(__half_as_ushort(a) ^ 0x8000u));
}
inline bool __hisnan(__half a) {
  return (__half_as_ushort(a) & 0x7fffu) > 0x7c00u;
}
inline __half operator+(const __half& a, const __half& b) {
  return __hadd(a, b);
}
inline __half operator-(const __half& a, const __half& b) {
  return __hsub(a, b);
}
inline __half operator*(const __half& a, const __half& b) {
  return __hmul(a, b);
}
inline __half operator/(const __half& a, const __half& b) {
  return __hdiv(a, b);
}
inline __half operator-(const __half& a) {
  return __hneg(a);
}
inline __half& operator+=(__half& a, const __half& b) {
  return a = a + b;
}
inline __half& operator*=(__half& a, const __half& b) {
  return a = a * b;
}
inline bool operator==(const __half& a, const __half& b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
inline bool operator!=(const __half& a, const __half& b) {
  return !(a == b);
}
inline bool operator<(const __half& a, const __half& b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
inline bool operator>(const __half& a, const __half& b) {
  return b < a;
}

inline __half2 __hadd2(__half2 a, __half2 b) {
  return {__hadd(a.x, b.x), __hadd(a.y, b.y)};
}
inline __half2 __hmul2(__half2 a, __half2 b) {
  return {__hmul(a.x, b.x), __hmul(a.y, b.y)};
}

inline __half atomicAdd(__half* address, __half value) {
  return emulator::atomic_change_2(address, [value](__half old) { return __hadd(old, value); });
}
inline __half2 atomicAdd(__half2* address, __half2 value) {
  return emulator::atomic_change(address, [value](__half2 old) { return __hadd2(old, value); });
}
