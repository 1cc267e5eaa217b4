// Where a device function was called: the last, defaulted parameter of every function that can
// wait or fail. (std::source_location would do, but clang 14 has none that works.)
#pragma once

namespace emulator {

struct Place {
  const char* file = "";
  int line = 0;

  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

}  // namespace emulator
