// ldmatrix and mma.sync. The registers of a warp are [slot][lane]; lane 4g + t holds columns 2t and
// 2t + 1 of row g, so that each slot is an 8 x 8 tile of 16-bit elements, row-major (of B: of its
// transpose).
#include <cstring>

#include "block.h"

namespace emulator {

namespace {

constexpr unsigned kWholeWarp = 0xffffffffu;

// Vector extensions of GCC and Clang, which split what the processor hasn't: plain loops are six
// times slower here.
using Floats4 = float __attribute__((vector_size(16)));
using Floats8 = float __attribute__((vector_size(32)));
using Words8 = std::uint32_t __attribute__((vector_size(32)));
using Halves8 = std::uint16_t __attribute__((vector_size(16)));

// Eight bf16 to eight floats.
void widen(float* to, const std::uint32_t* from) {
  Halves8 narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  const Words8 wide = __builtin_convertvector(narrow, Words8) << 16;
  std::memcpy(to, &wide, sizeof wide);
}

int num_matrices(Operation operation) {
  switch (operation) {
    case Operation::kLdmatrix1:
    case Operation::kLdmatrixTrans1:
      return 1;
    case Operation::kLdmatrix2:
    case Operation::kLdmatrixTrans2:
      return 2;
    default:
      return 4;
  }
}

// A row of an ldmatrix or stmatrix.
void tell_row(const void* row, bool writes, Place place) {
  if (observer() == nullptr) return;
  Access access;
  access.address = row;
  access.bytes = 16;
  access.via = writes ? Via::kStmatrix : Via::kLdmatrix;
  access.reads = !writes;
  access.writes = writes;
  access.place = place;
  tell_access(access);
}

}  // namespace

void compute_ldmatrix(Warp& warp, int num_matrices, bool transposed) {
  for (int matrix = 0; matrix < num_matrices; ++matrix) {
    for (int row = 0; row < 8; ++row) {
      const void* address = warp.rows[matrix * 8 + row];
      if (!transposed) {
        std::memcpy(&warp.out[matrix][row * 4], address, 16);
        continue;
      }
      std::uint16_t elements[8];
      std::memcpy(elements, address, sizeof elements);
      auto* tile = reinterpret_cast<char*>(&warp.out[matrix][0]);
      for (int column = 0; column < 8; ++column) {
        std::memcpy(tile + (column * 8 + row) * 2, &elements[column], 2);
      }
    }
  }
}

void ldmatrix(Operation operation, std::uint32_t* registers, const void* row, Place place) {
  constexpr std::size_t kRowBytes = 16;
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  const int matrices = num_matrices(operation);
  if (lane < matrices * 8) {  // the other lanes' addresses are not used
    if (reinterpret_cast<std::uintptr_t>(row) % kRowBytes != 0) {
      misaligned(name_of(operation), row, kRowBytes, place);
    }
    if (!block.in_shared(row, kRowBytes)) {
      block.fail("out of bounds",
                 std::string(name_of(operation)) + ": the row is not in shared memory", place);
    }
  }
  warp.rows[lane] = row;
  if (lane < matrices * 8) tell_row(row, false, place);
  block.collective(operation, kWholeWarp, place);
  for (int i = 0; i < matrices; ++i) registers[i] = warp.out[i][lane];
}

void compute_stmatrix(Warp& warp, bool transposed) {
  for (int matrix = 0; matrix < 4; ++matrix) {
    std::uint16_t values[8][8];
    std::memcpy(values, warp.in[matrix], sizeof values);
    for (int row = 0; row < 8; ++row) {
      std::uint16_t line[8];
      for (int i = 0; i < 8; ++i) line[i] = transposed ? values[i][row] : values[row][i];
      std::memcpy(const_cast<void*>(warp.rows[matrix * 8 + row]), line, sizeof line);
    }
  }
}

void stmatrix(Operation operation, const std::uint32_t* registers, void* row, Place place) {
  constexpr std::size_t kRowBytes = 16;
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  if (reinterpret_cast<std::uintptr_t>(row) % kRowBytes != 0) {
    misaligned(name_of(operation), row, kRowBytes, place);
  }
  if (!block.in_shared(row, kRowBytes)) {
    block.fail("out of bounds",
               std::string(name_of(operation)) + ": the row is not in shared memory", place);
  }
  warp.rows[lane] = row;
  for (int i = 0; i < 4; ++i) warp.in[i][lane] = registers[i];
  tell_row(row, true, place);
  block.collective(operation, kWholeWarp, place);
  block.lines.write(block.shared_offset(row), kRowBytes, block.current().linear);
}

// D (16 x 8) = A (16 x 16) * B (16 x 8) + D, summed in the order of k. Slots: a 0-3, b 4-5, d 6-9.
void compute_mma(Warp& warp) {
  alignas(32) float a[16][16];
  alignas(32) float b_columns[8][16];
  for (int g = 0; g < 8; ++g) {
    widen(&a[g][0], &warp.in[0][g * 4]);
    widen(&a[g + 8][0], &warp.in[1][g * 4]);
    widen(&a[g][8], &warp.in[2][g * 4]);
    widen(&a[g + 8][8], &warp.in[3][g * 4]);
    widen(&b_columns[g][0], &warp.in[4][g * 4]);
    widen(&b_columns[g][8], &warp.in[5][g * 4]);
  }
  Floats8 b_rows[16];
  for (int k = 0; k < 16; ++k) {
    b_rows[k] = Floats8{b_columns[0][k], b_columns[1][k], b_columns[2][k], b_columns[3][k],
                        b_columns[4][k], b_columns[5][k], b_columns[6][k], b_columns[7][k]};
  }
  for (int row = 0; row < 16; row += 4) {  // four rows at a time hide the latency of the additions
    const std::uint32_t* even_in = &warp.in[6 + row / 8 * 2][row % 8 * 4];
    const std::uint32_t* odd_in = &warp.in[7 + row / 8 * 2][row % 8 * 4];
    Floats8 sum[4];
    for (int i = 0; i < 4; ++i) {
      Floats4 even;
      Floats4 odd;
      std::memcpy(&even, even_in + i * 4, sizeof even);
      std::memcpy(&odd, odd_in + i * 4, sizeof odd);
      sum[i] = __builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7);
    }
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 4; ++i) sum[i] += a[row + i][k] * b_rows[k];
    }
    std::uint32_t* even_out = &warp.out[row / 8 * 2][row % 8 * 4];
    std::uint32_t* odd_out = &warp.out[row / 8 * 2 + 1][row % 8 * 4];
    for (int i = 0; i < 4; ++i) {
      const Floats4 even = __builtin_shufflevector(sum[i], sum[i], 0, 2, 4, 6);
      const Floats4 odd = __builtin_shufflevector(sum[i], sum[i], 1, 3, 5, 7);
      std::memcpy(even_out + i * 4, &even, sizeof even);
      std::memcpy(odd_out + i * 4, &odd, sizeof odd);
    }
  }
}

void mma_m16n8k16(float* d, const std::uint32_t* a, const std::uint32_t* b, Place place) {
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  for (int i = 0; i < 4; ++i) warp.in[i][lane] = a[i];
  for (int i = 0; i < 2; ++i) warp.in[4 + i][lane] = b[i];
  for (int i = 0; i < 4; ++i) std::memcpy(&warp.in[6 + i][lane], &d[i], sizeof d[i]);
  block.collective(Operation::kMma, kWholeWarp, place);
  for (int i = 0; i < 4; ++i) std::memcpy(&d[i], &warp.out[i][lane], sizeof d[i]);
}

}  // namespace emulator
