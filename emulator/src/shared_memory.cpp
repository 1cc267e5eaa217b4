#include "shared_memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "block.h"

namespace emulator {

namespace {

struct Range {
  char* low = nullptr;
  std::size_t bytes = 0;
};

// The calling thread's copy of the thread-local segment of the executable or library that the
// emulator and the kernels are linked into: the one with t_block in it. GCC refuses a section of
// their own for the statics of plain and of template functions, so __shared__ variables have no
// smaller home.
Range thread_local_segment() {
  Range segment;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        const char* own = reinterpret_cast<const char*>(&t_block);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          if (object->dlpi_phdr[i].p_type != PT_TLS) continue;
          char* low = static_cast<char*>(object->dlpi_tls_data);
          const std::size_t bytes = object->dlpi_phdr[i].p_memsz;
          if (low == nullptr || own < low || own >= low + bytes) continue;
          *static_cast<Range*>(result) = {low, bytes};
          return 1;
        }
        return 0;
      },
      &segment);
  return segment;
}

template <class T>
Range range_of(T& variable) {
  return {reinterpret_cast<char*>(&variable), sizeof variable};
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (window_ == nullptr) return;
  asan_unpoison(window_, kWindowBytes);
  munmap(window_, kWindowBytes + static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

bool SharedMemory::map() {
  if (window_ != nullptr) return true;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* window = mmap(nullptr, kWindowBytes + page, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (window == MAP_FAILED) return false;
  window_ = static_cast<unsigned char*>(window);
  mprotect(window_ + kWindowBytes, page, PROT_NONE);
  if (!kAsan) {
    const Range segment = thread_local_segment();
    static_low_ = segment.low;
    static_bytes_ = segment.bytes;
  }
  set_dynamic(0);
  return true;
}

void SharedMemory::set_dynamic(std::size_t bytes) {
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  dynamic_ = window_ + kWindowBytes - rounded;
  dynamic_bytes_ = bytes;
  asan_unpoison(window_, kWindowBytes);
  asan_poison(window_, kWindowBytes - rounded);
  asan_poison(dynamic_ + bytes, rounded - bytes);
  std::memset(dynamic_, 0, bytes);
}

void SharedMemory::poison() {
  std::memset(dynamic_, 0xff, dynamic_bytes_);
  if (kAsan) return;  // it watches the bytes behind, and static variables aren't thread-local
  unsigned char* end = dynamic_ + dynamic_bytes_;
  std::memset(end, kCanary, static_cast<std::size_t>(window_ + kWindowBytes - end));
}

// The whole segment but for the emulator's own variables. Nothing else in it may be relied on by an
// OS thread that runs blocks.
template <class F>
void SharedMemory::each_static_part(F f) const {
  if (static_low_ == nullptr) return;
  std::array<Range, 5> own = {range_of(threadIdx), range_of(blockIdx), range_of(blockDim),
                              range_of(gridDim), range_of(t_block)};
  std::sort(own.begin(), own.end(), [](Range a, Range b) { return a.low < b.low; });
  char* next = static_low_;
  for (const Range& range : own) {
    f(next, static_cast<std::size_t>(range.low - next));
    next = range.low + range.bytes;
  }
  f(next, static_cast<std::size_t>(static_low_ + static_bytes_ - next));
}

void SharedMemory::poison_static() const {
  each_static_part([](char* low, std::size_t bytes) { std::memset(low, 0xff, bytes); });
}

bool SharedMemory::wrote_static() const {
  bool wrote = false;
  each_static_part([&wrote](const char* low, std::size_t bytes) {
    wrote = wrote || std::any_of(low, low + bytes, [](char byte) { return byte != '\xff'; });
  });
  return wrote;
}

std::string SharedMemory::overrun() const {
  if (kAsan) return "";
  const unsigned char* end = window_ + kWindowBytes;
  const unsigned char* found =
      std::find_if(dynamic_ + dynamic_bytes_, const_cast<unsigned char*>(end),
                   [](unsigned char byte) { return byte != kCanary; });
  if (found == end) return "";
  return "the block wrote byte " + std::to_string(found - dynamic_) +
         " of dynamic shared memory; the launch asked for " + std::to_string(dynamic_bytes_);
}

}  // namespace emulator
