// fp8.h: e4m3 and e5m2 codes on the host. Written from the definition and apart from the emulator's
// header, so that an error in one of them shows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace moe::judge {

using Fp8 = uint8_t;

inline constexpr Fp8 kE4m3Nan = 0x7f;

// Sign, 4 bits of exponent with a bias of 7, 3 of mantissa; all ones is NaN, and there is no
// infinity.
inline double from_e4m3(Fp8 code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  double value = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  if ((code & 0x7f) == kE4m3Nan) value = NAN;
  return (code & 0x80) != 0 ? -value : value;
}

// Sign, 5 bits of exponent with a bias of 15, 2 of mantissa; the last exponent is infinity and NaN.
inline double from_e5m2(Fp8 code) {
  const int exponent = (code >> 2) & 31;
  const int mantissa = code & 3;
  double value =
      exponent == 0 ? std::ldexp(mantissa, -16) : std::ldexp(4 + mantissa, exponent - 17);
  if (exponent == 31) value = mantissa == 0 ? INFINITY : NAN;
  return (code & 0x80) != 0 ? -value : value;
}

// |value| in units of the last place of a format with so many bits of mantissa, which is then
// rounded.
struct Fp8Rounding {
  int mantissa_bits = 3;
  int min_exponent = -6;
  int largest = 0x7e;
  bool to_zero = false;  // a mistake: truncation
};

// Round to nearest, ties to even, saturating; NaN gives 0x7f.
inline Fp8 to_fp8(double value, const Fp8Rounding& rounding) {
  if (std::isnan(value)) return kE4m3Nan;
  const int sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude > 1e6) return static_cast<Fp8>(sign | rounding.largest);
  int exponent = rounding.min_exponent;
  if (magnitude > 0.0) std::frexp(magnitude, &exponent);
  const int binade = std::max(exponent - 1, rounding.min_exponent);
  const double places = std::ldexp(magnitude, rounding.mantissa_bits - binade);  // exact
  const auto rounded =
      static_cast<int>(rounding.to_zero ? std::floor(places) : std::nearbyint(places));
  const int code = ((binade - rounding.min_exponent) << rounding.mantissa_bits) + rounded;
  return static_cast<Fp8>(sign | std::min(code, rounding.largest));
}

inline Fp8 to_e4m3(double value) {
  return to_fp8(value, {});
}
inline Fp8 to_e5m2(double value) {
  return to_fp8(value, {2, -14, 0x7b, false});
}

}  // namespace moe::judge
