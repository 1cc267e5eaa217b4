// CUDA's atomic functions. Real atomics: blocks run on several OS threads. Always inline, so that a
// traced build names the kernel's line and not one here.
#pragma once

#include <emulator/language.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace emulator {

// The second parameter of an atomic converts to the type of the first, as with CUDA's overloads.
template <class T>
struct Same {
  using Type = T;
};
template <class T>
using Operand = typename Same<T>::Type;

template <class T>
constexpr bool kAtomicInteger = std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8);

// Replaces *address by change(*address) and returns the old value.
template <class T, class Change>
__forceinline__ T atomic_change(T* address, Change change) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static_assert(sizeof(T) == sizeof(Bits), "atomics work on 4 or 8 bytes");
  auto* word = reinterpret_cast<Bits*>(address);
  Bits old_bits = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    T old_value;
    std::memcpy(static_cast<void*>(&old_value), &old_bits, sizeof old_value);
    const T new_value = change(old_value);
    Bits new_bits;
    std::memcpy(&new_bits, &new_value, sizeof new_bits);
    if (__atomic_compare_exchange_n(word, &old_bits, new_bits, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return old_value;
    }
  }
}

// The same for 2 bytes, of a type that is copied bit by bit.
template <class T, class Change>
__forceinline__ T atomic_change_2(T* address, Change change) {
  static_assert(sizeof(T) == sizeof(std::uint16_t), "atomic_change_2 works on 2 bytes");
  auto* word = reinterpret_cast<std::uint16_t*>(address);
  std::uint16_t old_bits = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    T old_value;
    std::memcpy(static_cast<void*>(&old_value), &old_bits, sizeof old_value);
    const T new_value = change(old_value);
    std::uint16_t new_bits = 0;
    std::memcpy(&new_bits, &new_value, sizeof new_bits);
    if (__atomic_compare_exchange_n(word, &old_bits, new_bits, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)) {
      return old_value;
    }
  }
}

}  // namespace emulator

template <class T>
__forceinline__ T atomicAdd(T* address, emulator::Operand<T> value) {
  if constexpr (std::is_floating_point_v<T>) {
    return emulator::atomic_change(address, [value](T old) { return old + value; });
  } else {
    static_assert(emulator::kAtomicInteger<T>, "atomicAdd: no such type");
    return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
  }
}
template <class T>
__forceinline__ T atomicSub(T* address, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicSub: no such type");
  return __atomic_fetch_sub(address, value, __ATOMIC_RELAXED);
}
template <class T>
__forceinline__ T atomicMin(T* address, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicMin: no such type");
  return emulator::atomic_change(address, [value](T old) { return value < old ? value : old; });
}
template <class T>
__forceinline__ T atomicMax(T* address, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicMax: no such type");
  return emulator::atomic_change(address, [value](T old) { return value > old ? value : old; });
}
template <class T>
__forceinline__ T atomicAnd(T* address, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicAnd: no such type");
  return __atomic_fetch_and(address, value, __ATOMIC_RELAXED);
}
template <class T>
__forceinline__ T atomicOr(T* address, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicOr: no such type");
  return __atomic_fetch_or(address, value, __ATOMIC_RELAXED);
}
template <class T>
__forceinline__ T atomicXor(T* address, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicXor: no such type");
  return __atomic_fetch_xor(address, value, __ATOMIC_RELAXED);
}
template <class T>
__forceinline__ T atomicExch(T* address, emulator::Operand<T> value) {
  return emulator::atomic_change(address, [value](T) { return value; });
}
template <class T>
__forceinline__ T atomicCAS(T* address, emulator::Operand<T> expected, emulator::Operand<T> value) {
  static_assert(emulator::kAtomicInteger<T>, "atomicCAS: no such type");
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
__forceinline__ unsigned atomicInc(unsigned* address, unsigned limit) {
  return emulator::atomic_change(address,
                                 [limit](unsigned old) { return old >= limit ? 0u : old + 1u; });
}
__forceinline__ unsigned atomicDec(unsigned* address, unsigned limit) {
  return emulator::atomic_change(
      address, [limit](unsigned old) { return old == 0u || old > limit ? limit : old - 1u; });
}

// The scoped forms: an atomic of the whole device is one of the block and of the system too.
#define EMULATOR_SCOPED_ATOMIC(NAME)                              \
  template <class T, class... Values>                             \
  __forceinline__ T NAME##_block(T* address, Values... values) {  \
    return NAME(address, static_cast<T>(values)...);              \
  }                                                               \
  template <class T, class... Values>                             \
  __forceinline__ T NAME##_system(T* address, Values... values) { \
    return NAME(address, static_cast<T>(values)...);              \
  }

EMULATOR_SCOPED_ATOMIC(atomicAdd)
EMULATOR_SCOPED_ATOMIC(atomicSub)
EMULATOR_SCOPED_ATOMIC(atomicMin)
EMULATOR_SCOPED_ATOMIC(atomicMax)
EMULATOR_SCOPED_ATOMIC(atomicAnd)
EMULATOR_SCOPED_ATOMIC(atomicOr)
EMULATOR_SCOPED_ATOMIC(atomicXor)
EMULATOR_SCOPED_ATOMIC(atomicExch)
EMULATOR_SCOPED_ATOMIC(atomicCAS)
EMULATOR_SCOPED_ATOMIC(atomicInc)
EMULATOR_SCOPED_ATOMIC(atomicDec)

#undef EMULATOR_SCOPED_ATOMIC
