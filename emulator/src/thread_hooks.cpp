// The functions that -fsanitize=thread makes a compiler call, defined here instead of by the
// sanitizer's runtime: each access of a kernel file goes to the observer (observer.h). The names
// are the compilers' ABI, g++ 12 and clang 14; one that a newer compiler adds shows as a link
// error.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "block.h"
#include "observer.h"

// NOLINTBEGIN(bugprone-reserved-identifier, readability-non-const-parameter): the ABI says so

namespace {

using emulator::Access;
using emulator::MemoryOrder;
using emulator::Via;

bool watched() {
  return emulator::observer() != nullptr && emulator::t_block != nullptr;
}

void tell(const void* address, std::size_t bytes, bool writes, const void* pc) {
  if (!watched()) return;
  Access access;
  access.address = address;
  access.bytes = static_cast<std::uint32_t>(bytes);
  access.reads = !writes;
  access.writes = writes;
  access.pc = reinterpret_cast<std::uintptr_t>(pc);
  emulator::tell_access(access);
}

MemoryOrder order_of(int order) {
  switch (order) {
    case __ATOMIC_CONSUME:
    case __ATOMIC_ACQUIRE:
      return MemoryOrder::kAcquire;
    case __ATOMIC_RELEASE:
      return MemoryOrder::kRelease;
    case __ATOMIC_ACQ_REL:
    case __ATOMIC_SEQ_CST:
      return MemoryOrder::kAcquireRelease;
    default:
      return MemoryOrder::kRelaxed;
  }
}

void tell_atomic(const volatile void* address,
                 std::size_t bytes,
                 bool reads,
                 bool writes,
                 int order,
                 const void* pc) {
  if (!watched()) return;
  Access access;
  access.address = const_cast<const void*>(address);
  access.bytes = static_cast<std::uint32_t>(bytes);
  access.via = Via::kAtomic;
  access.reads = reads;
  access.writes = writes;
  access.order = order_of(order);
  access.pc = reinterpret_cast<std::uintptr_t>(pc);
  emulator::tell_access(access);
}

}  // namespace

#define HERE __builtin_return_address(0)

#define ACCESS_HOOKS(BYTES)                                    \
  void __tsan_read##BYTES(void* address) {                     \
    tell(address, BYTES, false, HERE);                         \
  }                                                            \
  void __tsan_write##BYTES(void* address) {                    \
    tell(address, BYTES, true, HERE);                          \
  }                                                            \
  void __tsan_unaligned_read##BYTES(void* address) {           \
    tell(address, BYTES, false, HERE);                         \
  }                                                            \
  void __tsan_unaligned_write##BYTES(void* address) {          \
    tell(address, BYTES, true, HERE);                          \
  }                                                            \
  void __tsan_volatile_read##BYTES(void* address) {            \
    tell(address, BYTES, false, HERE);                         \
  }                                                            \
  void __tsan_volatile_write##BYTES(void* address) {           \
    tell(address, BYTES, true, HERE);                          \
  }                                                            \
  void __tsan_unaligned_volatile_read##BYTES(void* address) {  \
    tell(address, BYTES, false, HERE);                         \
  }                                                            \
  void __tsan_unaligned_volatile_write##BYTES(void* address) { \
    tell(address, BYTES, true, HERE);                          \
  }                                                            \
  void __tsan_read_write##BYTES(void* address) {               \
    tell(address, BYTES, false, HERE);                         \
    tell(address, BYTES, true, HERE);                          \
  }                                                            \
  void __tsan_unaligned_read_write##BYTES(void* address) {     \
    tell(address, BYTES, false, HERE);                         \
    tell(address, BYTES, true, HERE);                          \
  }

// The orders are what the kernel asked for; the operation itself is a real one of the strictest
// order, since blocks may run on several OS threads.
#define FETCH_HOOK(BITS, TYPE, NAME)                                                       \
  TYPE __tsan_atomic##BITS##_fetch_##NAME(volatile TYPE* address, TYPE value, int order) { \
    tell_atomic(address, sizeof(TYPE), true, true, order, HERE);                           \
    return __atomic_fetch_##NAME(address, value, __ATOMIC_SEQ_CST);                        \
  }

#define COMPARE_HOOK(BITS, TYPE, NAME)                                                      \
  int __tsan_atomic##BITS##_compare_exchange_##NAME(volatile TYPE* address, TYPE* expected, \
                                                    TYPE value, int order, int) {           \
    tell_atomic(address, sizeof(TYPE), true, true, order, HERE);                            \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST,   \
                                       __ATOMIC_SEQ_CST);                                   \
  }

#define ATOMIC_HOOKS(BITS, TYPE)                                                         \
  TYPE __tsan_atomic##BITS##_load(const volatile TYPE* address, int order) {             \
    tell_atomic(address, sizeof(TYPE), true, false, order, HERE);                        \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                   \
  }                                                                                      \
  void __tsan_atomic##BITS##_store(volatile TYPE* address, TYPE value, int order) {      \
    tell_atomic(address, sizeof(TYPE), false, true, order, HERE);                        \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                  \
  }                                                                                      \
  TYPE __tsan_atomic##BITS##_exchange(volatile TYPE* address, TYPE value, int order) {   \
    tell_atomic(address, sizeof(TYPE), true, true, order, HERE);                         \
    return __atomic_exchange_n(address, value, __ATOMIC_SEQ_CST);                        \
  }                                                                                      \
  TYPE __tsan_atomic##BITS##_compare_exchange_val(volatile TYPE* address, TYPE expected, \
                                                  TYPE value, int order, int) {          \
    tell_atomic(address, sizeof(TYPE), true, true, order, HERE);                         \
    __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_SEQ_CST,      \
                                __ATOMIC_SEQ_CST);                                       \
    return expected;                                                                     \
  }                                                                                      \
  COMPARE_HOOK(BITS, TYPE, strong)                                                       \
  COMPARE_HOOK(BITS, TYPE, weak)                                                         \
  FETCH_HOOK(BITS, TYPE, add)                                                            \
  FETCH_HOOK(BITS, TYPE, sub)                                                            \
  FETCH_HOOK(BITS, TYPE, and)                                                            \
  FETCH_HOOK(BITS, TYPE, or)                                                             \
  FETCH_HOOK(BITS, TYPE, xor)                                                            \
  FETCH_HOOK(BITS, TYPE, nand)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_ignore_thread_begin() {}
void __tsan_ignore_thread_end() {}

ACCESS_HOOKS(1)
ACCESS_HOOKS(2)
ACCESS_HOOKS(4)
ACCESS_HOOKS(8)
ACCESS_HOOKS(16)

void __tsan_read_range(void* address, std::size_t bytes) {
  tell(address, bytes, false, HERE);
}
void __tsan_write_range(void* address, std::size_t bytes) {
  tell(address, bytes, true, HERE);
}

void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  tell(from, bytes, false, HERE);
  tell(to, bytes, true, HERE);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  tell(from, bytes, false, HERE);
  tell(to, bytes, true, HERE);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  tell(to, bytes, true, HERE);
  return std::memset(to, value, bytes);
}

ATOMIC_HOOKS(8, std::uint8_t)
ATOMIC_HOOKS(16, std::uint16_t)
ATOMIC_HOOKS(32, std::uint32_t)
ATOMIC_HOOKS(64, std::uint64_t)

void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (!watched()) return;
  emulator::Block& block = *emulator::t_block;
  emulator::observer()->fence(block, block.current().linear, emulator::FenceKind::kThread);
}
void __tsan_atomic_signal_fence(int) {}

}  // extern "C"

// NOLINTEND(bugprone-reserved-identifier, readability-non-const-parameter)
