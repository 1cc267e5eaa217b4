// Stands in for CUDA's header of the same name: 8-bit floating point, bit for bit as CUDA converts
// it. Left out: conversions of __half, e8m0, and conversions from and to integers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <emulator/fp8.h>
#include <vector_types.h>

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned int;

enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace emulator {

inline const Fp8Format& fp8_format(__nv_fp8_interpretation_t interpretation) {
  return interpretation == __NV_E4M3 ? kE4m3 : kE5m2;
}

}  // namespace emulator

// ---- Conversions of single values and pairs; the first of a pair is the low byte.
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x,
                                                __nv_saturation_t saturate,
                                                __nv_fp8_interpretation_t interpretation) {
  return emulator::fp8_from_float(x, emulator::fp8_format(interpretation),
                                  saturate == __NV_SATFINITE);
}
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x,
                                                 __nv_saturation_t saturate,
                                                 __nv_fp8_interpretation_t interpretation) {
  return __nv_cvt_float_to_fp8(emulator::round_to_odd(x), saturate, interpretation);
}
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x,
                                                  __nv_saturation_t saturate,
                                                  __nv_fp8_interpretation_t interpretation) {
  return __nv_cvt_float_to_fp8(emulator::half_bits_to_float(x.x), saturate, interpretation);
}
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw x,
                                                      __nv_saturation_t saturate,
                                                      __nv_fp8_interpretation_t interpretation) {
  return __nv_cvt_float_to_fp8(static_cast<float>(__nv_bfloat16(x)), saturate, interpretation);
}
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x,
                                                     __nv_saturation_t saturate,
                                                     __nv_fp8_interpretation_t interpretation) {
  const unsigned low = __nv_cvt_float_to_fp8(x.x, saturate, interpretation);
  const unsigned high = __nv_cvt_float_to_fp8(x.y, saturate, interpretation);
  return static_cast<__nv_fp8x2_storage_t>(high << 8 | low);
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x,
                                          __nv_fp8_interpretation_t interpretation) {
  return {emulator::fp8_to_half_bits(x, emulator::fp8_format(interpretation))};
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x,
                                              __nv_fp8_interpretation_t interpretation) {
  const auto low = static_cast<__nv_fp8_storage_t>(x & 0xffu);
  const auto high = static_cast<__nv_fp8_storage_t>(x >> 8);
  return {__nv_cvt_fp8_to_halfraw(low, interpretation).x,
          __nv_cvt_fp8_to_halfraw(high, interpretation).x};
}

// ---- The classes: __nv_fp8_e4m3, its pair __nv_fp8x2_e4m3 and its four __nv_fp8x4_e4m3. As in
// CUDA every conversion is explicit, saturates, and rounds to nearest even.
#define EMULATOR_FP8_TYPES(NAME, INTERPRETATION, FORMAT)                                         \
  struct __nv_fp8_##NAME {                                                                       \
    __nv_fp8_storage_t __x;                                                                      \
                                                                                                 \
    __nv_fp8_##NAME() = default;                                                                 \
    explicit __nv_fp8_##NAME(float f)                                                            \
        : __x(__nv_cvt_float_to_fp8(f, __NV_SATFINITE, INTERPRETATION)) {}                       \
    explicit __nv_fp8_##NAME(double f)                                                           \
        : __x(__nv_cvt_double_to_fp8(f, __NV_SATFINITE, INTERPRETATION)) {}                      \
    explicit __nv_fp8_##NAME(__nv_bfloat16 f) : __nv_fp8_##NAME(static_cast<float>(f)) {}        \
    explicit operator float() const { return emulator::fp8_to_float(__x, emulator::FORMAT); }    \
    explicit operator double() const {                                                           \
      return static_cast<double>(emulator::fp8_to_float(__x, emulator::FORMAT));                 \
    }                                                                                            \
    explicit operator __nv_bfloat16() const {                                                    \
      return __nv_bfloat16(emulator::fp8_to_float(__x, emulator::FORMAT));                       \
    }                                                                                            \
  };                                                                                             \
                                                                                                 \
  struct alignas(2) __nv_fp8x2_##NAME {                                                          \
    __nv_fp8x2_storage_t __x;                                                                    \
                                                                                                 \
    __nv_fp8x2_##NAME() = default;                                                               \
    explicit __nv_fp8x2_##NAME(float2 f)                                                         \
        : __x(__nv_cvt_float2_to_fp8x2(f, __NV_SATFINITE, INTERPRETATION)) {}                    \
    explicit __nv_fp8x2_##NAME(__nv_bfloat162 f) : __nv_fp8x2_##NAME(__bfloat1622float2(f)) {}   \
    explicit operator float2() const {                                                           \
      return {emulator::fp8_to_float(static_cast<unsigned char>(__x & 0xffu), emulator::FORMAT), \
              emulator::fp8_to_float(static_cast<unsigned char>(__x >> 8), emulator::FORMAT)};   \
    }                                                                                            \
  };                                                                                             \
                                                                                                 \
  struct alignas(4) __nv_fp8x4_##NAME {                                                          \
    __nv_fp8x4_storage_t __x;                                                                    \
                                                                                                 \
    __nv_fp8x4_##NAME() = default;                                                               \
    explicit __nv_fp8x4_##NAME(float4 f)                                                         \
        : __x(static_cast<__nv_fp8x4_storage_t>(__nv_fp8x2_##NAME(float2{f.z, f.w}).__x) << 16 | \
              __nv_fp8x2_##NAME(float2{f.x, f.y}).__x) {}                                        \
    explicit __nv_fp8x4_##NAME(__nv_bfloat162 low, __nv_bfloat162 high)                          \
        : __nv_fp8x4_##NAME(float4{static_cast<float>(low.x), static_cast<float>(low.y),         \
                                   static_cast<float>(high.x), static_cast<float>(high.y)}) {}   \
    explicit operator float4() const {                                                           \
      __nv_fp8x2_##NAME low;                                                                     \
      __nv_fp8x2_##NAME high;                                                                    \
      low.__x = static_cast<__nv_fp8x2_storage_t>(__x & 0xffffu);                                \
      high.__x = static_cast<__nv_fp8x2_storage_t>(__x >> 16);                                   \
      const float2 a = static_cast<float2>(low);                                                 \
      const float2 b = static_cast<float2>(high);                                                \
      return {a.x, a.y, b.x, b.y};                                                               \
    }                                                                                            \
  };

EMULATOR_FP8_TYPES(e4m3, __NV_E4M3, kE4m3)
EMULATOR_FP8_TYPES(e5m2, __NV_E5M2, kE5m2)

#undef EMULATOR_FP8_TYPES
