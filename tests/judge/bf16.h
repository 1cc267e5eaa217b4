// bf16.h: bf16 values on the host, as bits. Written from the definition and apart from the
// emulator's header, so that an error in one of them shows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace moe::judge {

using Bf16 = uint16_t;

inline float to_float(Bf16 bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0.0f;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// The distance between neighbouring bf16 values at |value|.
inline double bf16_ulp(double value) {
  int exponent = -125;
  if (value != 0.0) std::frexp(value, &exponent);
  return std::ldexp(1.0, (exponent < -125 ? -125 : exponent) - 8);
}

// Round to nearest, ties to even, from double in one step (through float would round twice).
inline Bf16 to_bf16(double value) {
  if (std::isnan(value)) return 0x7fff;
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (magnitude == 0.0) return sign;
  const double ulp = bf16_ulp(magnitude);
  const double rounded = std::nearbyint(magnitude / ulp) * ulp;  // both steps exact
  if (rounded > 3.3895313892515355e38) return static_cast<uint16_t>(sign | 0x7f80);
  const auto exact = static_cast<float>(rounded);
  uint32_t bits = 0;
  std::memcpy(&bits, &exact, sizeof bits);
  return static_cast<uint16_t>(sign | (bits >> 16));
}

inline bool is_nan(Bf16 bits) {
  return (bits & 0x7fff) > 0x7f80;
}

}  // namespace moe::judge
