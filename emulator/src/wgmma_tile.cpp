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

// Vector extensions of GCC and Clang, as in matrix.cpp.
using Floats4 = float __attribute__((vector_size(16)));
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
        const std::uint32_t word = operation.a_registers.data()[t * 4 + i];
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

// Two rows by four vectors of columns, over all k. The sums stay in registers.
template <class Vector>
inline __attribute__((always_inline)) void multiply_strip(
    const WgmmaTiles& tiles, int depth, int row, int column, float* d, int n) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
  float* low = d + row * n + column;
  float* high = low + n;
  Vector low0, low1, low2, low3, high0, high1, high2, high3;
  const auto load = [](Vector& to, const float* from) { std::memcpy(&to, from, sizeof to); };
  const auto keep = [](float* to, const Vector& from) { std::memcpy(to, &from, sizeof from); };
  load(low0, low), load(low1, low + kWidth), load(low2, low + 2 * kWidth);
  load(low3, low + 3 * kWidth), load(high0, high), load(high1, high + kWidth);
  load(high2, high + 2 * kWidth), load(high3, high + 3 * kWidth);
  for (int k = 0; k < depth; ++k) {
    const float a = tiles.a[row][k];
    const float b = tiles.a[row + 1][k];
    const float* from = &tiles.b[k][column];
    Vector column0, column1, column2, column3;
    load(column0, from), load(column1, from + kWidth);
    load(column2, from + 2 * kWidth), load(column3, from + 3 * kWidth);
    low0 += a * column0, low1 += a * column1, low2 += a * column2, low3 += a * column3;
    high0 += b * column0, high1 += b * column1, high2 += b * column2, high3 += b * column3;
  }
  keep(low, low0), keep(low + kWidth, low1), keep(low + 2 * kWidth, low2);
  keep(low + 3 * kWidth, low3), keep(high, high0), keep(high + kWidth, high1);
  keep(high + 2 * kWidth, high2), keep(high + 3 * kWidth, high3);
}

// What is left of the columns, eight at a time.
inline __attribute__((always_inline)) void multiply_rest(
    const WgmmaTiles& tiles, int depth, int row, int column, float* d, int n) {
  for (; column < n; ++column) {
    for (int r = row; r < row + 2; ++r) {
      float sum = d[r * n + column];
      for (int k = 0; k < depth; ++k) sum += tiles.a[r][k] * tiles.b[k][column];
      d[r * n + column] = sum;
    }
  }
}

template <class Vector>
inline __attribute__((always_inline)) void multiply_tiles(const WgmmaTiles& tiles,
                                                          int depth,
                                                          float* d,
                                                          int n) {
  constexpr int kStrip = 4 * sizeof(Vector) / sizeof(float);
  constexpr int kNarrowStrip = 16;
  for (int row = 0; row < kWgmmaRows; row += 2) {
    int column = 0;
    for (; column + kStrip <= n; column += kStrip) {
      multiply_strip<Vector>(tiles, depth, row, column, d, n);
    }
    for (; column + kNarrowStrip <= n; column += kNarrowStrip) {
      multiply_strip<Floats4>(tiles, depth, row, column, d, n);
    }
    multiply_rest(tiles, depth, row, column, d, n);
  }
}

#if defined(__x86_64__)
// No fused multiply-add here either: the sums must not depend on the processor.
__attribute__((target("avx2"))) void multiply_avx2(const WgmmaTiles& tiles,
                                                   int depth,
                                                   float* d,
                                                   int n) {
  multiply_tiles<Floats8>(tiles, depth, d, n);
}
#endif

// A Hopper tensor core keeps about 14 bits of a sum of e4m3 products (DeepSeek-V3, arXiv
// 2412.19437, section 3.5.2), so that long sums lose what is small beside them. The model: the 32
// products and what was there are added in fp32, then the sum is cut, towards zero, to 14 bits.
// Where exactly the hardware cuts isn't documented.
void cut_to_14_bits(float* sums, int count) {
  constexpr std::uint32_t kKept = ~((1u << (24 - 14)) - 1u);  // of 24 bits, the first unwritten
  for (int i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &sums[i], sizeof bits);
    if ((bits & 0x7f800000u) != 0x7f800000u) bits &= kKept;  // infinities and NaN stay
    std::memcpy(&sums[i], &bits, sizeof bits);
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

namespace {

void tell_piece(const void* bytes, Place place) {
  if (observer() == nullptr) return;
  Access access;
  access.address = bytes;
  access.bytes = SharedLines::kBytes;
  access.via = Via::kWgmma;
  access.reads = true;
  access.place = place;
  tell_access(access);
}

}  // namespace

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
      tell_piece(bytes, place);
    } else {
      hash = SharedLines::hash_of(bytes);
      if (block.lines.is_under_way(piece.offset)) {
        block.refuse_async_read(SharedLines::Problem::kUnderWay, "wgmma", bytes, place);
      }
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
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    multiply_avx2(tiles, depth, rows, n);
  } else {
    multiply_tiles<Floats4>(tiles, depth, rows, n);
  }
#else
  multiply_tiles<Floats4>(tiles, depth, rows, n);
#endif
  if (operation.call.is_e4m3) cut_to_14_bits(rows, kWgmmaRows * n);
}

}  // namespace emulator
