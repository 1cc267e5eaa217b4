// CUDA's arithmetic, bit and cached-access functions. The fast ones (__expf) are exact here: a GPU
// is less precise.
#pragma once

#include <emulator/device.h>

#include <math.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

// ---- Fast and explicitly rounded arithmetic.
inline float __expf(float x) {
  return expf(x);
}
inline float __exp10f(float x) {
  return exp10f(x);
}
inline float __logf(float x) {
  return logf(x);
}
inline float __log2f(float x) {
  return log2f(x);
}
inline float __log10f(float x) {
  return log10f(x);
}
inline float __powf(float x, float y) {
  return powf(x, y);
}
inline float __sinf(float x) {
  return sinf(x);
}
inline float __cosf(float x) {
  return cosf(x);
}
inline float __tanf(float x) {
  return tanf(x);
}
inline float __tanhf(float x) {
  return tanhf(x);
}
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = sinf(x);
  *cosine = cosf(x);
}
inline float __fdividef(float x, float y) {
  return x / y;
}
inline float __fadd_rn(float x, float y) {
  return x + y;
}
inline float __fsub_rn(float x, float y) {
  return x - y;
}
inline float __fmul_rn(float x, float y) {
  return x * y;
}
inline float __fdiv_rn(float x, float y) {
  return x / y;
}
inline float __frcp_rn(float x) {
  return 1.0f / x;
}
inline float __fsqrt_rn(float x) {
  return sqrtf(x);
}
inline float __frsqrt_rn(float x) {
  return static_cast<float>(1.0 / sqrt(static_cast<double>(x)));
}
inline float __fmaf_rn(float x, float y, float z) {
  return fmaf(x, y, z);
}
inline float rsqrtf(float x) {
  return static_cast<float>(1.0 / sqrt(static_cast<double>(x)));
}
inline double rsqrt(double x) {
  return 1.0 / sqrt(x);
}
inline float fdividef(float x, float y) {
  return x / y;
}
inline float __saturatef(float x) {
  return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}

// ---- Bits of floating-point numbers.
namespace emulator {

template <class To, class From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "bit_cast: sizes differ");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// Float to integer as the GPU converts: saturating, NaN gives 0. `value` is already rounded.
template <class Integer>
Integer saturate(double value) {
  constexpr bool kSigned = std::is_signed_v<Integer>;
  constexpr Integer kMax = static_cast<Integer>(kSigned ? 0x7fffffffu : 0xffffffffu);
  constexpr Integer kMin = static_cast<Integer>(kSigned ? 0x80000000u : 0u);
  if (value != value) return 0;
  if (value >= static_cast<double>(kMax)) return kMax;
  if (value <= static_cast<double>(kMin)) return kMin;
  return static_cast<Integer>(value);
}

}  // namespace emulator

inline unsigned __float_as_uint(float x) {
  return emulator::bit_cast<unsigned>(x);
}
inline int __float_as_int(float x) {
  return emulator::bit_cast<int>(x);
}
inline float __uint_as_float(unsigned x) {
  return emulator::bit_cast<float>(x);
}
inline float __int_as_float(int x) {
  return emulator::bit_cast<float>(x);
}
inline long long __double_as_longlong(double x) {
  return emulator::bit_cast<long long>(x);
}
inline double __longlong_as_double(long long x) {
  return emulator::bit_cast<double>(x);
}

inline int __float2int_rn(float x) {
  return emulator::saturate<int>(rint(static_cast<double>(x)));
}
inline int __float2int_rz(float x) {
  return emulator::saturate<int>(trunc(static_cast<double>(x)));
}
inline int __float2int_rd(float x) {
  return emulator::saturate<int>(floor(static_cast<double>(x)));
}
inline int __float2int_ru(float x) {
  return emulator::saturate<int>(ceil(static_cast<double>(x)));
}
inline unsigned __float2uint_rn(float x) {
  return emulator::saturate<unsigned>(rint(static_cast<double>(x)));
}
inline unsigned __float2uint_rz(float x) {
  return emulator::saturate<unsigned>(trunc(static_cast<double>(x)));
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned x) {
  return static_cast<float>(x);
}

// ---- Bits of integers.
inline int __popc(unsigned x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}
inline int __clz(int x) {
  return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x));
}
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
inline unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<unsigned long long>(x) * y >> 32);
}
inline int __mulhi(int x, int y) {
  return static_cast<int>(static_cast<long long>(x) * y >> 32);
}
inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both << (shift & 31u) >> 32);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  return static_cast<unsigned>(both >> (shift & 31u));
}
// Byte i of the result is the byte that nibble i of the selector names; its top bit asks for that
// byte's sign instead.
inline unsigned __byte_perm(unsigned low, unsigned high, unsigned selector) {
  const unsigned long long both = static_cast<unsigned long long>(high) << 32 | low;
  unsigned result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned nibble = selector >> 4 * i & 15u;
    unsigned byte = static_cast<unsigned>(both >> 8 * (nibble & 7u)) & 0xffu;
    if ((nibble & 8u) != 0) byte = (byte & 0x80u) != 0 ? 0xffu : 0u;
    result |= byte << 8 * i;
  }
  return result;
}

// ---- min and max: CUDA has them without std::.
inline int min(int a, int b) {
  return b < a ? b : a;
}
inline unsigned min(unsigned a, unsigned b) {
  return b < a ? b : a;
}
inline unsigned min(int a, unsigned b) {
  return min(static_cast<unsigned>(a), b);
}
inline unsigned min(unsigned a, int b) {
  return min(a, static_cast<unsigned>(b));
}
inline long min(long a, long b) {
  return b < a ? b : a;
}
inline unsigned long min(unsigned long a, unsigned long b) {
  return b < a ? b : a;
}
inline long long min(long long a, long long b) {
  return b < a ? b : a;
}
inline unsigned long long min(unsigned long long a, unsigned long long b) {
  return b < a ? b : a;
}
inline float min(float a, float b) {
  return fminf(a, b);
}
inline double min(double a, double b) {
  return fmin(a, b);
}
inline int max(int a, int b) {
  return b > a ? b : a;
}
inline unsigned max(unsigned a, unsigned b) {
  return b > a ? b : a;
}
inline unsigned max(int a, unsigned b) {
  return max(static_cast<unsigned>(a), b);
}
inline unsigned max(unsigned a, int b) {
  return max(a, static_cast<unsigned>(b));
}
inline long max(long a, long b) {
  return b > a ? b : a;
}
inline unsigned long max(unsigned long a, unsigned long b) {
  return b > a ? b : a;
}
inline long long max(long long a, long long b) {
  return b > a ? b : a;
}
inline unsigned long long max(unsigned long long a, unsigned long long b) {
  return b > a ? b : a;
}
inline float max(float a, float b) {
  return fmaxf(a, b);
}
inline double max(double a, double b) {
  return fmax(a, b);
}

// ---- Loads and stores with a cache hint: plain ones, with CUDA's alignment rule checked. Inlined,
// so that their place is the kernel's line.
#define EMULATOR_LOAD(NAME)                                                                   \
  template <class T>                                                                          \
  __forceinline__ T NAME(const T* address, emulator::Place place = emulator::Place::here()) { \
    if (reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) {                        \
      emulator::misaligned(#NAME, address, alignof(T), place);                                \
    }                                                                                         \
    return *address;                                                                          \
  }
#define EMULATOR_STORE(NAME)                                                   \
  template <class T>                                                           \
  __forceinline__ void NAME(T* address, T value,                               \
                            emulator::Place place = emulator::Place::here()) { \
    if (reinterpret_cast<std::uintptr_t>(address) % alignof(T) != 0) {         \
      emulator::misaligned(#NAME, address, alignof(T), place);                 \
    }                                                                          \
    *address = value;                                                          \
  }

EMULATOR_LOAD(__ldg)
EMULATOR_LOAD(__ldca)
EMULATOR_LOAD(__ldcg)
EMULATOR_LOAD(__ldcs)
EMULATOR_LOAD(__ldlu)
EMULATOR_LOAD(__ldcv)
EMULATOR_STORE(__stwb)
EMULATOR_STORE(__stcg)
EMULATOR_STORE(__stcs)
EMULATOR_STORE(__stwt)

#undef EMULATOR_LOAD
#undef EMULATOR_STORE
