// random.h: the repository's own generator, so that a seed means the same data everywhere.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

namespace moe::judge {

// SplitMix64's finaliser: spreads every bit of `value` over all bits.
constexpr uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15u;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

constexpr uint64_t mix(uint64_t seed, std::string_view text) {
  for (const char c : text) seed = mix(seed ^ static_cast<uint8_t>(c));
  return seed;
}

class Random {
 public:
  explicit Random(uint64_t seed) : state_(mix(seed)) {}

  uint64_t bits() { return mix(state_++); }
  // Uniform in [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  // Uniform in [low, high], both included.
  int integer(int low, int high) {
    const auto span = static_cast<uint64_t>(static_cast<int64_t>(high) - low + 1);
    return static_cast<int>(low + static_cast<int64_t>(bits() % span));
  }
  // Standard normal, by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t state_;
};

}  // namespace moe::judge
