// fp32.h: fp32 values on the host, as bits, so that the poison is told from every other NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace moe::judge {

using Fp32 = uint32_t;

inline float to_float(Fp32 bits) {
  float value = 0.0f;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline Fp32 to_fp32(double value) {
  const auto rounded = static_cast<float>(value);
  Fp32 bits = 0;
  std::memcpy(&bits, &rounded, sizeof bits);
  return bits;
}

// The distance between neighbouring fp32 values at |value|.
inline double fp32_ulp(double value) {
  int exponent = -125;
  if (value != 0.0) std::frexp(value, &exponent);
  return std::ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

inline bool is_nan(Fp32 bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u;
}

}  // namespace moe::judge
