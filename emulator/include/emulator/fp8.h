// The two 8-bit floating-point formats, bit for bit as CUDA converts them. No CUDA names, so that a
// test can hold these beside CUDA's own header.
#pragma once

#include <cstdint>
#include <cstring>

namespace emulator {

struct Fp8Format {
  int mantissa_bits;
  int min_exponent;  // of normal numbers
  int largest;       // code of the largest number
  int infinity;      // what overflows without saturation: infinity, or NaN where there is none
};

// e4m3: 4 bits of exponent, 3 of mantissa; no infinity, one NaN, up to 448.
inline constexpr Fp8Format kE4m3 = {3, -6, 0x7e, 0x7f};
// e5m2: 5 bits of exponent, 2 of mantissa: a half without its low byte, up to 57344.
inline constexpr Fp8Format kE5m2 = {2, -14, 0x7b, 0x7c};

inline constexpr unsigned char kFp8Nan = 0x7f;

// Round to nearest, ties to even. Any NaN becomes 0x7f.
inline unsigned char fp8_from_float(float value, const Fp8Format& format, bool saturate) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return kFp8Nan;
  const auto sign = static_cast<int>(bits >> 24 & 0x80u);
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  const int field = exponent > format.min_exponent ? exponent - format.min_exponent : 0;
  // How many bits of the 24-bit significand are rounded off; below 2^-1 of the last place nothing
  // is left.
  const int dropped = 23 - format.mantissa_bits + (field == 0 ? format.min_exponent - exponent : 0);
  int code = 0;
  if (dropped <= 24 && exponent > -127) {
    const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t last = significand >> dropped & 1u;
    const std::uint32_t rounded = (significand + (1u << (dropped - 1)) - 1u + last) >> dropped;
    code = (field << format.mantissa_bits) + static_cast<int>(rounded);
  }
  if (exponent == 128 || code > format.largest) code = saturate ? format.largest : format.infinity;
  return static_cast<unsigned char>(sign | code);
}

// The bits of the half with the same value; any NaN becomes 0x7fff.
inline unsigned short fp8_to_half_bits(unsigned char code, const Fp8Format& format) {
  const unsigned magnitude = code & 0x7fu;
  const unsigned sign = (code & 0x80u) << 8;
  if (format.infinity == 0x7c) {  // e5m2
    return static_cast<unsigned short>(magnitude > 0x7cu ? 0x7fffu : sign | magnitude << 8);
  }
  if (magnitude == kFp8Nan) return 0x7fff;
  unsigned mantissa = magnitude & 7u;
  unsigned exponent = magnitude >> 3;
  if (exponent == 0 && mantissa != 0) {  // subnormal here, normal as a half
    exponent = 1;
    while ((mantissa & 8u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 7u;
    exponent += 8;
  } else if (exponent != 0) {
    exponent += 8;
  }
  return static_cast<unsigned short>(sign | exponent << 10 | mantissa << 7);
}

inline float half_bits_to_float(unsigned short bits) {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  std::uint32_t exponent = bits >> 10 & 31u;
  std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 31 && mantissa != 0) mantissa = 0x3ff;
  if (exponent == 0 && mantissa != 0) {
    exponent = 1;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    mantissa &= 0x3ffu;
    exponent += 112;
  } else if (exponent != 0) {
    exponent = exponent == 31 ? 255 : exponent + 112;
  }
  const std::uint32_t wide = sign | exponent << 23 | mantissa << 13;
  float value = 0.0f;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

inline float fp8_to_float(unsigned char code, const Fp8Format& format) {
  return half_bits_to_float(fp8_to_half_bits(code, format));
}

}  // namespace emulator
