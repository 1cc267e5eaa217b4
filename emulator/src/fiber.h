// One CUDA thread as a fiber, and queues of them.
#pragma once

#include <emulator/device.h>
#include <emulator/language.h>

#include <cstdint>

#include "context.h"

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
  std::uint64_t* barrier = nullptr;  // the mbarrier that it waits for
  std::uint32_t detail = 0;          // its parity; or the number of a named barrier
  bool refused = false;              // try_wait is to say no
  bool stack_in_use = false;         // it was abandoned in the middle of a kernel
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

}  // namespace emulator
