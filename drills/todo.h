// todo.h: DRILL_TODO("m2.gather") marks a blank. A case that reaches one is TODO: neither passed
// nor failed. It notes the region and goes on, so that it can stand in host and in device code.
//
// CUDA version: device code leaves a hash of the region's name in a few slots that the test runner
// reads after the call. The emulator's twin keeps the name itself.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace moe {

inline constexpr int kTodoSlots = 16;

// FNV-1a of a region's name; never 0.
__host__ __device__ constexpr uint32_t todo_hash(const char* region) {
  uint32_t hash = 2166136261u;
  for (; *region != '\0'; ++region) hash = (hash ^ static_cast<uint8_t>(*region)) * 16777619u;
  return hash == 0 ? 1 : hash;
}

// Every .cu file has slots of its own; the runner walks the list to read and clear them all.
struct TodoSlots {
  using Access = cudaError_t (*)(uint32_t (&slots)[kTodoSlots], bool clear);
  static inline TodoSlots* first = nullptr;
  explicit TodoSlots(Access function) : access(function), next(first) { first = this; }
  Access access;
  TodoSlots* next;
};

// Host code reaches blanks too (a launcher that is to be written).
inline uint32_t host_todo_slots[kTodoSlots] = {};

}  // namespace moe

#ifdef __CUDACC__

namespace moe {
namespace {

__device__ uint32_t device_todo_slots[kTodoSlots];

cudaError_t access_todo_slots(uint32_t (&slots)[kTodoSlots], bool clear) {
  if (clear) {
    const uint32_t zero[kTodoSlots] = {};
    return cudaMemcpyToSymbol(device_todo_slots, zero, sizeof zero);
  }
  return cudaMemcpyFromSymbol(slots, device_todo_slots, sizeof slots);
}

[[maybe_unused]] const TodoSlots todo_slots_of_this_file(&access_todo_slots);

[[maybe_unused]] __host__ __device__ void note_todo(uint32_t hash) {
#ifdef __CUDA_ARCH__
  for (int i = 0; i < kTodoSlots; ++i) {
    const uint32_t before = atomicCAS(&device_todo_slots[i], 0u, hash);
    if (before == 0 || before == hash) return;
  }
#else
  for (uint32_t& slot : host_todo_slots) {
    if (slot == 0) slot = hash;
    if (slot == hash) return;
  }
#endif
}

}  // namespace
}  // namespace moe

#define DRILL_TODO(region)                                 \
  do {                                                     \
    constexpr uint32_t kRegion = ::moe::todo_hash(region); \
    ::moe::note_todo(kRegion);                             \
  } while (false)

#endif  // __CUDACC__
