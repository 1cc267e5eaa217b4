// Where a wgmma descriptor finds its tile, and the product of two tiles.
#include <emulator/fp8.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "block.h"
#include "wgmma.h"

namespace emulator {

namespace {

constexpr std::uint32_t kWindowMask = kSharedWindowBytes - 1;

// A vector extension of GCC and Clang, as in matrix.cpp.
using Floats8 = float __attribute__((vector_size(32)));

std::uint32_t field(std::uint64_t descriptor, int first_bit) {
  return static_cast<std::uint32_t>(descriptor >> first_bit & 0x3fffu) << 4;
}

float widen_bf16(std::uint16_t bits) {
  const std::uint32_t word = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

const std::array<float, 256>& decoded_codes() {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values{};
    for (std::size_t code = 0; code < values.size(); ++code) {
      values[code] = fp8_to_float(static_cast<unsigned char>(code), kE4m3);
    }
    return values;
  }();
  return kValues;
}

// The elements of a piece as floats: 8 bf16, or 16 codes.
void widen_piece(const unsigned char* piece, bool is_e4m3, float* values) {
  if (is_e4m3) {
    for (int i = 0; i < 16; ++i) values[i] = decoded_codes()[piece[i]];
    return;
  }
  std::uint16_t elements[8];
  std::memcpy(elements, piece, sizeof elements);
  for (int i = 0; i < 8; ++i) values[i] = widen_bf16(elements[i]);
}

void load_a(Block& block, const WgmmaOperation& operation, WgmmaTiles& tiles) {
  const WgmmaCall& call = operation.call;
  if (call.a_registers != nullptr) {
    for (int t = 0; t < kWarpgroupThreads; ++t) {
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t word = operation.a_registers[static_cast<std::size_t>(t * 4 + i)];
        float* pair = &tiles.a[t / 32 * 16 + t % 32 / 4 + 8 * (i % 2)][t % 4 * 2 + 8 * (i / 2)];
        pair[0] = widen_bf16(static_cast<std::uint16_t>(word));
        pair[1] = widen_bf16(static_cast<std::uint16_t>(word >> 16));
      }
    }
    return;
  }
  list_pieces(call.a, kWgmmaRows, call.a_is_mn_major, &block.tile_pieces, operation.place);
  const int per_piece = call.is_e4m3 ? 16 : 8;
  for (const TilePiece& piece : block.tile_pieces) {
    const unsigned char* bytes = block.shared_at(piece.offset);
    if (!call.a_is_mn_major) {
      widen_piece(bytes, call.is_e4m3, &tiles.a[piece.row][piece.k * per_piece]);
      continue;
    }
    float values[8];
    widen_piece(bytes, false, values);
    for (int i = 0; i < 8; ++i) tiles.a[piece.row + i][piece.k] = values[i];
  }
}

void load_b(Block& block, const WgmmaOperation& operation, WgmmaTiles& tiles) {
  const WgmmaCall& call = operation.call;
  list_pieces(call.b, call.n, call.b_is_mn_major, &block.tile_pieces, operation.place);
  const int per_piece = call.is_e4m3 ? 16 : 8;
  for (const TilePiece& piece : block.tile_pieces) {
    const unsigned char* bytes = block.shared_at(piece.offset);
    float values[16];
    widen_piece(bytes, call.is_e4m3, values);
    if (call.b_is_mn_major) {
      std::memcpy(&tiles.b[piece.k][piece.row], values, 8 * sizeof *values);
      continue;
    }
    for (int i = 0; i < per_piece; ++i) tiles.b[piece.k * per_piece + i][piece.row] = values[i];
  }
}

// `count` blocks of eight columns of two rows, over all k. The sums stay in registers.
template <int COUNT>
inline void multiply_strip(
    const WgmmaTiles& tiles, int depth, int row, int column, float* d, int n) {
  Floats8 sums[2][COUNT];
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < COUNT; ++c) {
      std::memcpy(&sums[r][c], d + (row + r) * n + column + 8 * c, sizeof(Floats8));
    }
  }
  for (int k = 0; k < depth; ++k) {
    for (int c = 0; c < COUNT; ++c) {
      Floats8 b;
      std::memcpy(&b, &tiles.b[k][column + 8 * c], sizeof b);
      sums[0][c] += tiles.a[row][k] * b;
      sums[1][c] += tiles.a[row + 1][k] * b;
    }
  }
  for (int r = 0; r < 2; ++r) {
    for (int c = 0; c < COUNT; ++c) {
      std::memcpy(d + (row + r) * n + column + 8 * c, &sums[r][c], sizeof(Floats8));
    }
  }
}

}  // namespace

void list_pieces(std::uint64_t descriptor,
                 int rows,
                 bool is_mn_major,
                 std::vector<TilePiece>* pieces,
                 Place place) {
  if (descriptor >> 62 != 1 || (descriptor >> 49 & 7u) != 0) {
    t_block->fail("wgmma",
                  "a descriptor without the 128-byte swizzle (bits 62-63 are 1, bits 49-51 are 0)",
                  place);
  }
  const std::uint32_t start = field(descriptor, 0);
  const std::uint32_t leading = field(descriptor, 16);
  const std::uint32_t stride = field(descriptor, 32);
  pieces->clear();
  const auto add = [&](int row, int k, std::uint32_t distance) {
    const std::uint32_t offset = (start + distance) & kWindowMask;
    pieces->push_back({row, k, static_cast<std::uint32_t>(swizzle_128(offset))});
  };
  if (!is_mn_major) {  // 8 rows of 128 bytes, of which 32 are used; then the next 8
    for (int row = 0; row < rows; ++row) {
      const auto r = static_cast<std::uint32_t>(row);
      for (std::uint32_t half = 0; half < 2; ++half) {
        add(row, static_cast<int>(half), r / 8 * stride + r % 8 * 128 + half * 16);
      }
    }
    return;
  }
  // 8 values of k, 64 rows in 128 bytes each; then the next 8 of k, and the next 64 rows.
  for (std::uint32_t k = 0; k < 16; ++k) {
    for (int row = 0; row < rows; row += 8) {
      const auto r = static_cast<std::uint32_t>(row);
      add(row, static_cast<int>(k), r / 64 * leading + k / 8 * stride + k % 8 * 128 + r % 64 * 2);
    }
  }
}

std::uint32_t hash_tile(Block& block,
                        const std::vector<TilePiece>& pieces,
                        int first_thread,
                        bool check_fences,
                        Place place) {
  std::uint32_t all = 0;
  for (const TilePiece& piece : pieces) {
    const unsigned char* bytes = block.shared_at(piece.offset);
    if (bytes == nullptr) {
      block.fail("out of bounds",
                 "a descriptor of a wgmma leads to shared address " + std::to_string(piece.offset) +
                     ", where the block has no shared memory",
                 place);
    }
    std::uint32_t hash = 0;
    if (check_fences) {
      const auto problem =
          block.lines.read(piece.offset, bytes, first_thread, kWarpgroupThreads, &hash);
      block.refuse_async_read(problem, "wgmma", bytes, place);
    } else {
      hash = SharedLines::hash_of(bytes);
    }
    all = all * 31 + hash;
  }
  return all;
}

void multiply(Block& block, const WgmmaOperation& operation, float* rows) {
  WgmmaTiles& tiles = block.wgmma_tiles();
  load_a(block, operation, tiles);
  load_b(block, operation, tiles);
  const int n = operation.call.n;
  const int depth = operation.call.is_e4m3 ? 32 : 16;
  for (int row = 0; row < kWgmmaRows; row += 2) {
    int column = 0;
    for (; column + 16 <= n; column += 16) multiply_strip<2>(tiles, depth, row, column, rows, n);
    if (column < n) multiply_strip<1>(tiles, depth, row, column, rows, n);
  }
}

}  // namespace emulator
