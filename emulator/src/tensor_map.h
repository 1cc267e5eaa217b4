// What is in a CUtensorMap here.
#pragma once

#include <cuda.h>
#include <emulator/hopper.h>

#include <cstddef>
#include <cstdint>

namespace emulator {

inline constexpr std::size_t kBoxRowBytes = 128;

struct TensorMap {
  std::uint64_t mark = 0;
  unsigned char* array = nullptr;
  std::uint64_t sizes[3] = {0, 0, 0};  // elements, innermost first
  int rank = 0;
  int element_bytes = 0;
  int box_rows = 0;

  std::size_t box_bytes() const { return kBoxRowBytes * static_cast<std::size_t>(box_rows); }
};

// False if the bytes are no map that make_tensor_map() made.
bool read_tensor_map(const CUtensorMap& map, TensorMap* contents);

// The address at which a byte of a swizzled box lies: bits 4 to 6 are changed by bits 7 to 9.
inline std::uintptr_t swizzle_128(std::uintptr_t address) {
  return address ^ (address >> 3 & 0x70u);
}

// One row of the box, `row` counted from the start: which bytes of its 128 lie in the array, and
// where. Null if none does.
struct BoxRow {
  unsigned char* array = nullptr;  // of the first byte that is inside
  std::size_t first = 0;           // that byte's place in the row of the box
  std::size_t count = 0;
};
BoxRow box_row(const TensorMap& map, const BoxStart& start, int row);

}  // namespace emulator
