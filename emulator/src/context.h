// The machine level: switching stacks (Boost.Context), guarded stacks, AddressSanitizer's hooks.
#pragma once

#include <emulator/language.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>

#ifdef EMULATOR_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulator {

struct Context {
  void* handle = nullptr;  // of Boost.Context, valid while the context is suspended
  bool is_new = false;     // it never ran
  const void* stack_low = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;  // AddressSanitizer's
};

// Keeps the handle of the context that was left, whose place it is given. Runs between two stacks,
// so AddressSanitizer must not look.
__attribute__((no_sanitize("address"))) inline boost::context::detail::transfer_t keep_handle(
    boost::context::detail::transfer_t left) {
  static_cast<Context*>(left.data)->handle = left.fctx;
  return left;
}

// Suspends `from` and resumes `to`. A context that is `leaving` never runs again.
//
// ontop_fcontext, because keep_handle() ends in a return instruction: with jump_fcontext, which
// ends in a jump, the processor mispredicts every return from here up to the kernel (15 ns instead
// of 8). But a context that never ran is jumped to: on aarch64 there is no frame below it that
// keep_handle() could return to, and what stands there ends the process.
__attribute__((always_inline)) inline void switch_context(Context& from,
                                                          Context& to,
                                                          [[maybe_unused]] bool leaving = false) {
#ifdef EMULATOR_ASAN
  __sanitizer_start_switch_fiber(leaving ? nullptr : &from.fake_stack, to.stack_low,
                                 to.stack_bytes);
#endif
  if (to.is_new) {
    to.is_new = false;
    boost::context::detail::jump_fcontext(to.handle, &from);  // start_context() keeps the handle
  } else {
    boost::context::detail::ontop_fcontext(to.handle, &from, &keep_handle);
  }
#ifdef EMULATOR_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

// Makes `context`, whose stack is known, start with context_main() when it is first switched to.
void prepare_context(Context& context, char* stack_top);

// What a new context runs: one CUDA thread (block.cpp).
[[noreturn]] void context_main();

// Fills in the bounds of the calling OS thread's own stack.
void describe_own_stack(Context& context);

// AddressSanitizer's opinion on a range; nothing in other builds.
void asan_poison(const void* start, std::size_t bytes);
void asan_unpoison(const void* start, std::size_t bytes);

#ifdef EMULATOR_ASAN
inline constexpr bool kAsan = true;
#else
inline constexpr bool kAsan = false;
#endif

// Stacks of one size with a guard below each. A large frame must not jump over the guard, hence its
// width: a guard of one page was jumped over by a frame of 37 KB.
class StackPool {
 public:
  StackPool() = default;
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;
  ~StackPool();

  // Room for at least `count` stacks of at least `stack_bytes`; false if there is no memory.
  bool reserve(int count, std::size_t stack_bytes);

  char* low(int index) const;
  // Shifted from stack to stack, so that the hot frames don't fall into the same cache sets.
  char* top(int index) const;
  std::size_t stack_bytes() const { return stack_bytes_; }
  // Is the address in a guard?
  bool in_guard(const void* address) const;

 private:
  static constexpr std::size_t kGuardBytes = std::size_t{64} * 1024;

  std::size_t stride() const { return stack_bytes_ + kGuardBytes; }
  void release();

  char* base_ = nullptr;
  std::size_t stack_bytes_ = 0;
  int count_ = 0;
};

}  // namespace emulator
