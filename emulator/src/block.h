// One thread block: its CUDA threads as fibers of one OS thread, barriers, warp collectives and the
// diagnosis of what goes wrong between them.
#pragma once

#include <emulator/control.h>
#include <emulator/device.h>
#include <emulator/kernel_call.h>
#include <emulator/language.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "async_copy.h"
#include "context.h"
#include "fault.h"

namespace emulator {

inline constexpr int kLanes = 32;
inline constexpr int kMaxThreads = 1024;

enum class State : std::uint8_t { kReady, kWaiting, kReturned };

// One CUDA thread.
struct Fiber {
  Context context;
  Fiber* next = nullptr;  // in the one queue that holds it
  uint3 index{};
  int linear = 0;
  State state = State::kReady;
  Operation operation = Operation::kNone;  // where it waits, or waited last
  Place place;
  bool stack_in_use = false;  // it was abandoned in the middle of a kernel
};

// A queue of fibers; joining two takes constant time.
class FiberQueue {
 public:
  bool empty() const { return head_ == nullptr; }
  void push_back(Fiber* fiber) {
    fiber->next = nullptr;
    if (tail_ != nullptr) {
      tail_->next = fiber;
    } else {
      head_ = fiber;
    }
    tail_ = fiber;
  }

  void splice_front(FiberQueue& other) {
    if (other.empty()) return;
    other.tail_->next = head_;
    head_ = other.head_;
    if (tail_ == nullptr) tail_ = other.tail_;
    other.head_ = other.tail_ = nullptr;
  }

  void splice_back(FiberQueue& other) {
    if (other.empty()) return;
    if (tail_ != nullptr) {
      tail_->next = other.head_;
    } else {
      head_ = other.head_;
    }
    tail_ = other.tail_;
    other.head_ = other.tail_ = nullptr;
  }

  Fiber* pop() {
    Fiber* fiber = head_;
    if (fiber != nullptr) {
      head_ = fiber->next;
      if (head_ == nullptr) tail_ = nullptr;
    }
    return fiber;
  }

 private:
  Fiber* head_ = nullptr;
  Fiber* tail_ = nullptr;
};

// A warp collective that some of its lanes have reached.
struct Collective {
  Operation operation = Operation::kNone;
  unsigned mask = 0;
  unsigned arrived = 0;
  Place place;
  FiberQueue waiting;
};

// Lanes hand each other registers as [slot][lane]. Collectives under way have masks that do not
// overlap and at least two lanes each, hence sixteen at most.
struct Warp {
  static constexpr int kInputs = 10;
  static constexpr int kOutputs = 4;

  alignas(64) std::uint32_t in[kInputs][kLanes];
  alignas(64) std::uint32_t out[kOutputs][kLanes];
  const void* rows[kLanes];
  unsigned live = 0;
  int num_collectives = 0;
  std::array<Collective, kLanes / 2> collectives;
};

class Block {
 public:
  // Room for blocks of that size; false if there is no memory for the stacks.
  bool prepare(dim3 block_dim);

  // Runs one block to its end on this OS thread. On a fault it stops at once: as on a GPU, the
  // other threads never go on.
  void run(const KernelCall& call, uint3 block_index, dim3 grid_dim);

  bool failed() const { return fault_.error != cudaSuccess; }
  const Fault& fault() const { return fault_; }
  // A fault of the whole block, found after it ended or when none of its threads can run.
  void set_block_fault(const char* kind, const std::string& sentence);

  // ---- From inside a kernel.
  int sync_threads(Operation operation, bool predicate, Place place);
  void nanosleep(Place place);
  // Waits until all live lanes of the mask have come; the last one computes for all of them.
  void collective(Operation operation, unsigned mask, Place place);
  Warp& warp() { return warps_[static_cast<std::size_t>(current_->linear / kLanes)]; }
  int lane() const { return current_->linear % kLanes; }
  AsyncCopies& async_copies() { return copies_[static_cast<std::size_t>(current_->linear)]; }

  // Ends the block with a fault of the calling thread. The thread's frames are never left, so the
  // sentence is emptied: nothing in them may own memory.
  [[noreturn]] void fail(const char* kind,
                         std::string&& sentence,
                         Place place,
                         bool with_states = false);
  [[noreturn]] void thread_main();

  // ---- Reports.
  // Threads grouped by where they are, one line each.
  std::string describe_states() const;
  bool in_guard(const void* address) const { return stacks_.in_guard(address); }
  // Do the bytes lie in the shared memory of this block, as far as that is known?
  bool in_shared(const void* address, std::size_t bytes) const;

  unsigned char* dynamic_shared = nullptr;
  std::size_t dynamic_shared_bytes = 0;
  // Set while the library reads or writes memory for a kernel: the kernel's line, for crash
  // reports.
  Place touching;
  const char* static_shared = nullptr;  // where __shared__ variables lie; null if not known
  std::size_t static_shared_bytes = 0;

  // Counts everything that brings the block forward; the watchdog reads it.
  std::atomic<std::uint64_t> progress{0};

 private:
  struct Barrier {
    int arrived = 0;
    Operation operation = Operation::kNone;
    Place place;
    int count = 0;  // of true predicates
    int result = 0;
    FiberQueue waiting;
  };

  void set_fault(const char* kind, const std::string& sentence);
  void start_threads();
  void advance() {
    progress.store(progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  void wait_at(Operation operation, Place place) {
    current_->state = State::kWaiting;
    current_->operation = operation;
    current_->place = place;
  }
  void switch_to_next(bool leaving);
  void release_barrier();
  void leave_warp(Fiber& fiber);
  void leave_barrier();
  void finish_collective(Warp& warp, Collective& collective);
  [[noreturn]] void refuse_arrival(const Collective& collective,
                                   Operation operation,
                                   unsigned mask,
                                   Place place);
  [[noreturn]] void refuse_mask(Operation operation, unsigned mask, Place place);
  [[noreturn]] void fail_at(const char* kind, std::string&& sentence, const Fiber& fiber);
  [[noreturn]] void abandon();
  std::uint32_t random();

  StackPool stacks_;
  Context own_context_;
  std::vector<Fiber> fibers_;
  std::vector<AsyncCopies> copies_;
  std::vector<Warp> warps_;
  const KernelCall* call_ = nullptr;
  Fiber* current_ = nullptr;
  FiberQueue ready_;
  Barrier barrier_;
  int num_threads_ = 0;
  int live_ = 0;
  std::uint64_t random_state_ = 1;
  Order order_ = Order::kForward;
  Fault fault_;
};

// The block that this OS thread runs, null outside kernels.
inline thread_local Block* t_block = nullptr;

const char* name_of(Operation operation);
// PTX marks these .aligned: the whole warp executes the same instruction.
inline bool is_aligned(Operation operation) {
  return operation >= Operation::kLdmatrix1;
}
// Computes a warp collective from the lanes' inputs (collective.cpp, matrix.cpp).
void compute_collective(Warp& warp, const Collective& collective);
void compute_ldmatrix(Warp& warp, int num_matrices, bool transposed);
void compute_mma(Warp& warp);
void compute_mma_e4m3(Warp& warp);

// ---- The hot path, inline for switch_context()'s sake.

// Resumes the next ready thread, or the OS thread's own context if there is none.
__attribute__((always_inline)) inline void Block::switch_to_next(bool leaving) {
  Fiber* self = current_;
  Fiber* next = ready_.pop();
  if (next != nullptr && next == self) {
    self->state = State::kReady;
    return;
  }
  Context* to = &own_context_;
  if (next != nullptr) {
    current_ = next;
    threadIdx = next->index;
    next->state = State::kReady;
    to = &next->context;
  }
  switch_context(self->context, *to, leaving);
}

__attribute__((always_inline)) inline void Block::collective(Operation operation,
                                                             unsigned mask,
                                                             Place place) {
  Warp& w = warp();
  const unsigned self = 1u << lane();
  const bool aligned = is_aligned(operation);
  if ((mask & self) == 0 || (aligned && w.live != 0xffffffffu)) {
    refuse_mask(operation, mask, place);
  }
  Collective* joined = nullptr;
  for (int i = 0; i < w.num_collectives && joined == nullptr; ++i) {
    Collective& candidate = w.collectives[static_cast<std::size_t>(i)];
    if ((candidate.mask & mask & w.live) != 0) joined = &candidate;
  }
  if (joined == nullptr) {
    joined = &w.collectives[static_cast<std::size_t>(w.num_collectives++)];
    *joined = {operation, mask, 0, place, {}};
  } else if (joined->operation != operation || joined->mask != mask ||
             (aligned && joined->place.line != place.line)) {
    refuse_arrival(*joined, operation, mask, place);
  }
  joined->arrived |= self;
  if (joined->arrived == (mask & w.live)) {
    finish_collective(w, *joined);
    return;
  }
  wait_at(operation, place);
  joined->waiting.push_back(current_);
  switch_to_next(false);
}

}  // namespace emulator
