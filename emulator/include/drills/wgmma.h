// The matrix instruction of a warpgroup: the emulator's twin of drills/wgmma.h, which explains it.
#pragma once

#include <cstdint>

#include <drills/hopper.h>

namespace moe {

inline void wgmma_fence() {
  ::emulator::wgmma_fence();
}
inline void wgmma_commit() {
  ::emulator::wgmma_commit();
}
template <int N>
inline void wgmma_wait(EMULATOR_HERE) {
  static_assert(N >= 0, "wgmma_wait<N>(): N is a number of groups");
  ::emulator::wgmma_wait(N, place);
}

enum class Major { kK, kMN };

inline std::uint64_t wgmma_descriptor(const void* tile,
                                      int leading_bytes = 16,
                                      int stride_bytes = 1024) {
  return static_cast<std::uint64_t>(shared_address(tile) >> 4 & 0x3fff) |
         static_cast<std::uint64_t>(leading_bytes >> 4 & 0x3fff) << 16 |
         static_cast<std::uint64_t>(stride_bytes >> 4 & 0x3fff) << 32 | std::uint64_t{1} << 62;
}

// All multiples of 8 up to 256.
#define EMULATOR_WGMMA(N)                                                                         \
  template <Major A = Major::kK, Major B = Major::kK>                                             \
  inline void wgmma_bf16(float(&d)[(N) / 2], std::uint64_t a, std::uint64_t b, bool accumulate,   \
                         EMULATOR_HERE) {                                                         \
    ::emulator::wgmma({d, nullptr, a, b, N, accumulate, A == Major::kMN, B == Major::kMN, false}, \
                      place);                                                                     \
  }                                                                                               \
  template <Major B = Major::kK>                                                                  \
  inline void wgmma_bf16(float(&d)[(N) / 2], const std::uint32_t(&a)[4], std::uint64_t b,         \
                         bool accumulate, EMULATOR_HERE) {                                        \
    ::emulator::wgmma({d, a, 0, b, N, accumulate, false, B == Major::kMN, false}, place);         \
  }                                                                                               \
  inline void wgmma_e4m3(float(&d)[(N) / 2], std::uint64_t a, std::uint64_t b, bool accumulate,   \
                         EMULATOR_HERE) {                                                         \
    ::emulator::wgmma({d, nullptr, a, b, N, accumulate, false, false, true}, place);              \
  }

#define EMULATOR_WGMMA_FOUR(N) \
  EMULATOR_WGMMA(N) EMULATOR_WGMMA(N + 8) EMULATOR_WGMMA(N + 16) EMULATOR_WGMMA(N + 24)

EMULATOR_WGMMA_FOUR(8)
EMULATOR_WGMMA_FOUR(40)
EMULATOR_WGMMA_FOUR(72)
EMULATOR_WGMMA_FOUR(104)
EMULATOR_WGMMA_FOUR(136)
EMULATOR_WGMMA_FOUR(168)
EMULATOR_WGMMA_FOUR(200)
EMULATOR_WGMMA_FOUR(232)

#undef EMULATOR_WGMMA_FOUR
#undef EMULATOR_WGMMA

}  // namespace moe
