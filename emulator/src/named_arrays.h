// Which array an address belongs to, in words. Safe in a signal handler: nothing is allocated.
#pragma once

#include <emulator/named_arrays.h>

#include <cstddef>
#include <cstdint>

namespace emulator {

struct ElementText {
  char text[160];
  bool inside;  // false: before the start or behind the end of the array
};

// "x[row 9 of 4][col 0]" of the named array that the address lies in, or in whose allocation, or
// else of the nearest one; false where none is near.
bool describe_element(const void* address, ElementText* element);

// Of the array that holds the address; null if none does.
const NamedArray* array_at(const void* address);

// The allocation that the address lies in, as cudaMalloc made it (memory.cpp).
struct AllocationRange {
  std::uintptr_t low = 0;
  std::size_t bytes = 0;
};
bool find_allocation(const void* address, AllocationRange* range);

}  // namespace emulator
