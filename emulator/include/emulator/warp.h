// Barriers, fences and warp functions under CUDA's names.
#pragma once

#include <emulator/device.h>
#include <emulator/language.h>

#include <cassert>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

// Every synchronising function takes the caller's place behind CUDA's own parameters.
#define EMULATOR_HERE ::emulator::Place place = ::emulator::Place::here()

inline void __syncthreads(EMULATOR_HERE) {
  emulator::sync_threads(emulator::Operation::kSyncThreads, false, place);
}
inline int __syncthreads_count(int predicate, EMULATOR_HERE) {
  return emulator::sync_threads(emulator::Operation::kSyncThreadsCount, predicate != 0, place);
}
inline int __syncthreads_and(int predicate, EMULATOR_HERE) {
  return emulator::sync_threads(emulator::Operation::kSyncThreadsAnd, predicate != 0, place);
}
inline int __syncthreads_or(int predicate, EMULATOR_HERE) {
  return emulator::sync_threads(emulator::Operation::kSyncThreadsOr, predicate != 0, place);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, EMULATOR_HERE) {
  emulator::sync_warp(mask, place);
}

inline void __threadfence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_block() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
inline void __threadfence_system() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

// Lets the other threads of the block run: the one legal way to wait for another block.
inline void __nanosleep(unsigned, EMULATOR_HERE) {
  emulator::nanosleep(place);
}
[[noreturn]] inline void __trap(EMULATOR_HERE) {
  emulator::trap(place);
}
inline long long clock64() {
  return emulator::clock();
}

namespace emulator {

template <class T>
T shuffle_value(Operation operation, unsigned mask, T value, int operand, int width, Place place) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "shuffles take int, unsigned, long, long long, float or double");
  std::uint32_t words[sizeof(T) / 4];
  std::memcpy(words, &value, sizeof value);
  shuffle(operation, mask, words, sizeof(T) / 4, operand, width, place);
  std::memcpy(&value, words, sizeof value);
  return value;
}

}  // namespace emulator

template <class T>
T __shfl_sync(unsigned mask, T value, int source_lane, int width = 32, EMULATOR_HERE) {
  return emulator::shuffle_value(emulator::Operation::kShuffle, mask, value, source_lane, width,
                                 place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATOR_HERE) {
  return emulator::shuffle_value(emulator::Operation::kShuffleUp, mask, value,
                                 static_cast<int>(delta), width, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATOR_HERE) {
  return emulator::shuffle_value(emulator::Operation::kShuffleDown, mask, value,
                                 static_cast<int>(delta), width, place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, EMULATOR_HERE) {
  return emulator::shuffle_value(emulator::Operation::kShuffleXor, mask, value, lane_mask, width,
                                 place);
}

inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kBallot, mask, predicate != 0, place);
}
inline int __any_sync(unsigned mask, int predicate, EMULATOR_HERE) {
  return static_cast<int>(emulator::vote(emulator::Operation::kAny, mask, predicate != 0, place));
}
inline int __all_sync(unsigned mask, int predicate, EMULATOR_HERE) {
  return static_cast<int>(emulator::vote(emulator::Operation::kAll, mask, predicate != 0, place));
}

namespace emulator {

template <class T>
std::uint64_t match_bits(T value) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8),
                "match functions take int, unsigned, long, long long, float or double");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace emulator

template <class T>
unsigned __match_any_sync(unsigned mask, T value, EMULATOR_HERE) {
  return emulator::match(emulator::Operation::kMatchAny, mask, emulator::match_bits(value), place);
}
template <class T>
unsigned __match_all_sync(unsigned mask, T value, int* predicate, EMULATOR_HERE) {
  const unsigned lanes =
      emulator::match(emulator::Operation::kMatchAll, mask, emulator::match_bits(value), place);
  *predicate = lanes != 0;
  return lanes;
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned value, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kReduceAdd, mask, value, place);
}
inline int __reduce_add_sync(unsigned mask, int value, EMULATOR_HERE) {
  return static_cast<int>(
      emulator::vote(emulator::Operation::kReduceAdd, mask, static_cast<unsigned>(value), place));
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kReduceMin, mask, value, place);
}
inline int __reduce_min_sync(unsigned mask, int value, EMULATOR_HERE) {
  return static_cast<int>(emulator::vote(emulator::Operation::kReduceMinSigned, mask,
                                         static_cast<unsigned>(value), place));
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kReduceMax, mask, value, place);
}
inline int __reduce_max_sync(unsigned mask, int value, EMULATOR_HERE) {
  return static_cast<int>(emulator::vote(emulator::Operation::kReduceMaxSigned, mask,
                                         static_cast<unsigned>(value), place));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kReduceAnd, mask, value, place);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kReduceOr, mask, value, place);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, EMULATOR_HERE) {
  return emulator::vote(emulator::Operation::kReduceXor, mask, value, place);
}
