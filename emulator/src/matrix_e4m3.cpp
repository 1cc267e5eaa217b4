// mma.sync on e4m3 codes. The registers of a warp are [slot][lane]; lane 4g + t holds columns 4t ..
// 4t + 3 of row g, so that each slot is an 8 x 16 tile of codes, row-major (of B: of its
// transpose).
#include <emulator/fp8.h>

#include <array>
#include <cstring>

#include "block.h"

namespace emulator {

namespace {

constexpr unsigned kWholeWarp = 0xffffffffu;
constexpr int kDepth = 32;

// A vector extension of GCC and Clang, as in matrix.cpp.
using Floats8 = float __attribute__((vector_size(32)));

std::array<float, 256> decoded_codes() {
  std::array<float, 256> values{};
  for (int code = 0; code < 256; ++code) {
    values[static_cast<std::size_t>(code)] = fp8_to_float(static_cast<unsigned char>(code), kE4m3);
  }
  return values;
}

// Sixteen codes to sixteen floats.
void widen(float* to, const std::uint32_t* from) {
  static const std::array<float, 256> kValues = decoded_codes();
  unsigned char codes[16];
  std::memcpy(codes, from, sizeof codes);
  for (int i = 0; i < 16; ++i) to[i] = kValues[codes[i]];
}

}  // namespace

// D (16 x 8) = A (16 x 32) * B (32 x 8) + D, summed in the order of k. Slots: a 0-3, b 4-5, d 6-9.
void compute_mma_e4m3(Warp& warp) {
  alignas(32) float a[16][kDepth];
  alignas(32) float b_columns[8][kDepth];
  for (int g = 0; g < 8; ++g) {
    widen(&a[g][0], &warp.in[0][g * 4]);
    widen(&a[g + 8][0], &warp.in[1][g * 4]);
    widen(&a[g][16], &warp.in[2][g * 4]);
    widen(&a[g + 8][16], &warp.in[3][g * 4]);
    widen(&b_columns[g][0], &warp.in[4][g * 4]);
    widen(&b_columns[g][16], &warp.in[5][g * 4]);
  }
  Floats8 b_rows[kDepth];
  for (int k = 0; k < kDepth; ++k) {
    b_rows[k] = Floats8{b_columns[0][k], b_columns[1][k], b_columns[2][k], b_columns[3][k],
                        b_columns[4][k], b_columns[5][k], b_columns[6][k], b_columns[7][k]};
  }
  for (int row = 0; row < 16; row += 4) {  // four rows at a time hide the latency of the additions
    Floats8 sum[4];
    const int even = row / 8 * 2;  // slots of even and odd columns
    for (int i = 0; i < 4; ++i) {
      for (int t = 0; t < 4; ++t) {
        float pair[2];
        std::memcpy(&pair[0], &warp.in[6 + even][(row % 8 + i) * 4 + t], sizeof pair[0]);
        std::memcpy(&pair[1], &warp.in[7 + even][(row % 8 + i) * 4 + t], sizeof pair[1]);
        sum[i][2 * t] = pair[0];
        sum[i][2 * t + 1] = pair[1];
      }
    }
    for (int k = 0; k < kDepth; ++k) {
      for (int i = 0; i < 4; ++i) sum[i] += a[row + i][k] * b_rows[k];
    }
    for (int i = 0; i < 4; ++i) {
      for (int t = 0; t < 4; ++t) {
        const float pair[2] = {sum[i][2 * t], sum[i][2 * t + 1]};
        std::memcpy(&warp.out[even][(row % 8 + i) * 4 + t], &pair[0], sizeof pair[0]);
        std::memcpy(&warp.out[even + 1][(row % 8 + i) * 4 + t], &pair[1], sizeof pair[1]);
      }
    }
  }
}

void mma_m16n8k32_e4m3(float* d, const std::uint32_t* a, const std::uint32_t* b, Place place) {
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  for (int i = 0; i < 4; ++i) warp.in[i][lane] = a[i];
  for (int i = 0; i < 2; ++i) warp.in[4 + i][lane] = b[i];
  for (int i = 0; i < 4; ++i) std::memcpy(&warp.in[6 + i][lane], &d[i], sizeof d[i]);
  block.collective(Operation::kMmaE4m3, kWholeWarp, place);
  for (int i = 0; i < 4; ++i) std::memcpy(&d[i], &warp.out[i][lane], sizeof d[i]);
}

}  // namespace emulator
