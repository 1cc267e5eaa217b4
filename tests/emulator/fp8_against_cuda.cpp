// The emulator's 8-bit conversions, and those of the tests, beside CUDA's own on the host: all 256
// codes, all 65,536 bf16 values and the floats next to them, both formats, saturating and not.
// Built where there is a toolkit; includes CUDA's header, and of the emulator only the file that
// has no CUDA names.
#include <cuda_fp8.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "../../emulator/include/emulator/fp8.h"
#include "../judge/fp8.h"

namespace {

int g_wrong = 0;

void report(const char* name, int wrong) {
  std::printf("%s: %d wrong\n", name, wrong);
  g_wrong += wrong;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::memcmp(&a, &b, sizeof a) == 0;
}

void check_codes() {
  int wrong = 0;
  for (int i = 0; i < 256; ++i) {
    const auto code = static_cast<unsigned char>(i);
    __nv_fp8_e4m3 e4m3;
    __nv_fp8_e5m2 e5m2;
    e4m3.__x = e5m2.__x = code;
    const unsigned short halves[2] = {__half_raw(__nv_cvt_fp8_to_halfraw(code, __NV_E4M3)).x,
                                      __half_raw(__nv_cvt_fp8_to_halfraw(code, __NV_E5M2)).x};
    wrong += emulator::fp8_to_half_bits(code, emulator::kE4m3) != halves[0] ? 1 : 0;
    wrong += emulator::fp8_to_half_bits(code, emulator::kE5m2) != halves[1] ? 1 : 0;
    wrong += same(emulator::fp8_to_float(code, emulator::kE4m3), static_cast<float>(e4m3)) ? 0 : 1;
    wrong += same(emulator::fp8_to_float(code, emulator::kE5m2), static_cast<float>(e5m2)) ? 0 : 1;
    wrong +=
        same(static_cast<float>(moe::judge::from_e4m3(code)), static_cast<float>(e4m3)) ? 0 : 1;
    wrong +=
        same(static_cast<float>(moe::judge::from_e5m2(code)), static_cast<float>(e5m2)) ? 0 : 1;
  }
  report("codes to float and half", wrong);
}

void check_floats() {
  int wrong[2] = {};
  for (uint32_t bf16 = 0; bf16 < 65536; ++bf16) {
    for (const uint32_t tail : {0u, 1u, 0x7fffu, 0x8000u, 0xffffu}) {
      const uint32_t bits = bf16 << 16 | tail;
      float value = 0.0f;
      std::memcpy(&value, &bits, sizeof value);
      for (const bool saturate : {false, true}) {
        const auto saturation = saturate ? __NV_SATFINITE : __NV_NOSAT;
        wrong[0] += emulator::fp8_from_float(value, emulator::kE4m3, saturate) !=
                            __nv_cvt_float_to_fp8(value, saturation, __NV_E4M3)
                        ? 1
                        : 0;
        wrong[0] += emulator::fp8_from_float(value, emulator::kE5m2, saturate) !=
                            __nv_cvt_float_to_fp8(value, saturation, __NV_E5M2)
                        ? 1
                        : 0;
      }
      const double wide = static_cast<double>(value);
      wrong[1] += moe::judge::to_e4m3(wide) != __nv_fp8_e4m3(value).__x ? 1 : 0;
      wrong[1] += moe::judge::to_e5m2(wide) != __nv_fp8_e5m2(value).__x ? 1 : 0;
    }
  }
  report("floats to codes, emulator", wrong[0]);
  report("floats to codes, tests", wrong[1]);
}

}  // namespace

int main() {
  check_codes();
  check_floats();
  return g_wrong == 0 ? 0 : 1;
}
