// The shared memory of one OS thread: a window for the dynamic part, and the segment of
// thread-local variables, in which every __shared__ variable lies.
#pragma once

#include <cstddef>
#include <string>

#include "shared_lines.h"

namespace emulator {

inline constexpr std::size_t kMaxSharedBytes = std::size_t{227} * 1024;

class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // To be called on the OS thread itself; false if there is no memory.
  bool map();
  // Places the dynamic part at the end of the window, right before an inaccessible page.
  void set_dynamic(std::size_t bytes);
  // Fills the dynamic part with 0xFF, which is NaN, and the bytes behind it with a pattern.
  void poison();
  // The same for static variables.
  void poison_static() const;
  // Has one of them been written since?
  bool wrote_static() const;
  // The sentence on a write behind the dynamic part, "" if there was none since poison().
  std::string overrun() const;

  unsigned char* window() const { return window_; }
  unsigned char* dynamic() const { return dynamic_; }
  const char* static_low() const { return static_low_; }  // null under AddressSanitizer
  std::size_t static_bytes() const { return static_bytes_; }

 private:
  static constexpr std::size_t kWindowBytes = kSharedWindowBytes;
  static constexpr std::size_t kAlignment = 1024;  // what TMA's 128-byte swizzle asks for
  static constexpr unsigned char kCanary = 0xa5;

  // Calls f(low, bytes) for the parts of the segment that are not the emulator's own.
  template <class F>
  void each_static_part(F f) const;

  unsigned char* window_ = nullptr;
  unsigned char* dynamic_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  char* static_low_ = nullptr;
  std::size_t static_bytes_ = 0;
};

}  // namespace emulator
