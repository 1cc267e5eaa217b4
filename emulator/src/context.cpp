#include "context.h"

#include <pthread.h>
#include <sys/mman.h>

#ifdef EMULATOR_ASAN
#include <sanitizer/asan_interface.h>

// Each CUDA thread would get a fake stack of its own, which makes everything 15 to 50 times slower.
extern "C" const char* __asan_default_options() {
  return "detect_stack_use_after_return=0";
}
#endif

namespace emulator {

namespace {

// The first frame of a new stack. It is never left, so AddressSanitizer must not mark it.
__attribute__((no_sanitize("address"))) void start_context(
    boost::context::detail::transfer_t left) {
  keep_handle(left);
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  context_main();
}

}  // namespace

void prepare_context(Context& context, char* stack_top) {
  const auto bytes =
      static_cast<std::size_t>(stack_top - static_cast<const char*>(context.stack_low));
  context.handle = boost::context::detail::make_fcontext(stack_top, bytes, &start_context);
  context.is_new = true;
}

void describe_own_stack(Context& context) {
  pthread_attr_t attributes;
  void* low = nullptr;
  std::size_t bytes = 0;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &low, &bytes);
  pthread_attr_destroy(&attributes);
  context.stack_low = low;
  context.stack_bytes = bytes;
}

void asan_poison([[maybe_unused]] const void* start, [[maybe_unused]] std::size_t bytes) {
#ifdef EMULATOR_ASAN
  __asan_poison_memory_region(start, bytes);
#endif
}

void asan_unpoison([[maybe_unused]] const void* start, [[maybe_unused]] std::size_t bytes) {
#ifdef EMULATOR_ASAN
  __asan_unpoison_memory_region(start, bytes);
#endif
}

StackPool::~StackPool() {
  release();
}

bool StackPool::reserve(int count, std::size_t stack_bytes) {
  const std::size_t rounded = (stack_bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  if (count <= count_ && rounded == stack_bytes_) return true;
  release();
  stack_bytes_ = rounded;
  void* base = mmap(nullptr, stride() * static_cast<std::size_t>(count), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    stack_bytes_ = 0;
    return false;
  }
  base_ = static_cast<char*>(base);
  count_ = count;
  for (int i = 0; i < count; ++i) {
    // Without its guard (too many mappings, say) a stack still works.
    (void)mprotect(low(i) - kGuardBytes, kGuardBytes, PROT_NONE);
  }
  return true;
}

char* StackPool::low(int index) const {
  return base_ + stride() * static_cast<std::size_t>(index) + kGuardBytes;
}

char* StackPool::top(int index) const {
  return low(index) + stack_bytes_ - static_cast<std::size_t>(index % 61) * 64;
}

bool StackPool::in_guard(const void* address) const {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(base_);
  if (base_ == nullptr || offset >= stride() * static_cast<std::size_t>(count_)) return false;
  return offset % stride() < kGuardBytes;
}

void StackPool::release() {
  if (base_ == nullptr) return;
  const std::size_t bytes = stride() * static_cast<std::size_t>(count_);
  asan_unpoison(base_, bytes);
  munmap(base_, bytes);
  base_ = nullptr;
  count_ = 0;
}

}  // namespace emulator
