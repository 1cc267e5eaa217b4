// Names and shapes of arrays in device memory, so that a report can say x[row 9 of 4][col 0] where
// it would have only an address. A test runner tells them before a call and takes them back after.
#pragma once

#include <cstddef>

namespace emulator {

struct NamedArray {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  const char* name = "";  // copied, its first 31 characters
  std::size_t element_bytes = 1;
  std::size_t columns = 0;  // 0: one dimension
  std::size_t rows = 0;     // of each matrix, where there are several; else 0
  bool is_written = true;   // false: a kernel must write it before anything may be read
};

// What lies around the array in its allocation is out of bounds from here on. (AddressSanitizer is
// told so, which refuses the host too: forget the names before copying.)
void name_array(const NamedArray& array);
void forget_arrays();

}  // namespace emulator
