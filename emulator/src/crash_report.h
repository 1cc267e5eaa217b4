// What is written while the process dies.
#pragma once

#include <emulator/control.h>
#include <emulator/language.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace emulator {

// A report in a fixed buffer: a signal handler must not allocate.
class Report {
 public:
  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list values;
    va_start(values, format);
    const int written = std::vsnprintf(text_ + length_, sizeof text_ - length_, format, values);
    va_end(values);
    if (written > 0) length_ += static_cast<std::size_t>(written);
    if (length_ >= sizeof text_) length_ = sizeof text_ - 1;
  }
  void add_thread() {
    add("  in block (%u,%u,%u) thread (%u,%u,%u)", blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x,
        threadIdx.y, threadIdx.z);
  }
  void write_out() const {
    std::size_t done = 0;
    while (done < length_) {
      const ssize_t written = ::write(options().report_fd, text_ + done, length_ - done);
      if (written <= 0) return;
      done += static_cast<std::size_t>(written);
    }
  }

 private:
  char text_[1024];
  std::size_t length_ = 0;
};

// An instruction of this program as addr2line wants it; 0 for one of a library.
std::uintptr_t offset_in_program(std::uintptr_t pc);

// Reports of AddressSanitizer and UBSan, where the program was built with them (sanitizer.cpp).
void install_sanitizer_reports();

}  // namespace emulator
