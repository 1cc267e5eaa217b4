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
#include <memory>
#include <string>
#include <vector>

#include "async_copy.h"
#include "bulk_copy.h"
#include "context.h"
#include "fault.h"
#include "fiber.h"
#include "mbarrier.h"
#include "named_barrier.h"
#include "observer.h"
#include "register_budget.h"
#include "shared_lines.h"
#include "wgmma.h"

namespace emulator {

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

class Cluster;

class Block {
 public:
  // Room for blocks of that size; false if there is no memory for the stacks.
  bool prepare(dim3 block_dim);

  // ---- One block on this OS thread, driven by its cluster. On a fault it stops at once: as on a
  // GPU, the other threads never go on.
  void start(const KernelCall& call, uint3 block_index, dim3 grid_dim, Cluster& cluster, int rank);
  bool can_run() const { return !ready_.empty(); }
  // Runs until no thread can go on, or one of a cluster lets the other blocks go on.
  void resume();
  // Lands copies that somebody waits for; false if that helped nobody.
  bool settle();
  // The same where threads that poll found nothing new for long.
  void settle_if_asked();
  // Lets those that only try a wait go on with the answer no; false if there are none, or if that
  // was done often and the block did not move since. (others_moved: nothing to do.)
  bool refuse_polls(bool others_moved);
  // After the last thread: what is still under way is a fault.
  void finish();

  int live() const { return live_; }
  int num_threads() const { return num_threads_; }
  int rank() const { return rank_; }
  uint3 index() const { return index_; }
  Cluster& cluster() { return *cluster_; }

  bool failed() const { return fault_.error != cudaSuccess; }
  const Fault& fault() const { return fault_; }
  // A fault of the whole block, found after it ended or when none of its threads can run.
  void set_block_fault(const char* kind, const std::string& sentence);
  void add_to_fault(const std::string& text) { fault_.text += text; }

  // ---- From inside a kernel.
  int sync_threads(Operation operation, bool predicate, Place place);
  // Lets the other threads run, and the other blocks of the cluster.
  void poll(Operation operation, Place place);
  // Waits until all live lanes of the mask have come; the last one computes for all of them.
  void collective(Operation operation, unsigned mask, Place place);
  Warp& warp() { return warps_[static_cast<std::size_t>(current_->linear / kLanes)]; }
  int lane() const { return current_->linear % kLanes; }
  AsyncCopies& async_copies() { return async_copies_of(current_->linear); }
  AsyncCopies& async_copies_of(int thread) { return copies_[static_cast<std::size_t>(thread)]; }
  Warpgroup& warpgroup(int thread) {
    return warpgroups_[static_cast<std::size_t>(thread / kWarpgroupThreads)];
  }
  WgmmaTiles& wgmma_tiles();
  Fiber& current() { return *current_; }
  // Puts the calling thread into a queue; it stops at switch_away().
  void queue_current(FiberQueue& queue, Operation operation, Place place) {
    wait_at(operation, place);
    queue.push_back(current_);
  }
  void switch_away() { switch_to_next(false); }
  void wait_in(FiberQueue& queue, Operation operation, Place place) {
    queue_current(queue, operation, place);
    switch_away();
  }
  // Goes on when all other threads that can run have had their turn.
  void let_others_run(Operation operation, Place place) {
    if (!can_run()) return;
    wait_in(ready_, operation, place);
  }
  // The threads in the queue can run again.
  void resume_later(FiberQueue& queue) { ready_.splice_back(queue); }
  void wake(FiberQueue& queue) {
    resume_later(queue);
    advance();
  }
  void advance() {
    progress.store(progress.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Ends the block with a fault of the calling thread. The thread's frames are never left, so the
  // sentence is emptied: nothing in them may own memory.
  [[noreturn]] void fail(const char* kind,
                         std::string&& sentence,
                         Place place,
                         bool with_states = false);
  // The same where no thread of this block may be running.
  void report(const char* kind, std::string&& sentence, Place place);
  // What wgmma and bulk stores find wrong with a line that they read.
  void refuse_async_read(SharedLines::Problem problem,
                         const char* function,
                         const void* address,
                         Place place);
  [[noreturn]] void thread_main();

  // ---- Shared memory as a window of 256 KB: what PTX's 32-bit addresses mean.
  // Of what is not in shared memory, an offset behind the window.
  std::uint32_t shared_offset(const void* address) const;
  // Null where the block has no shared memory.
  unsigned char* shared_at(std::uint32_t offset) const;

  // ---- Reports.
  // Threads grouped by where they are, one line each.
  std::string describe_states() const;
  bool in_guard(const void* address) const { return stacks_.in_guard(address); }
  // Do the bytes lie in the shared memory of this block, as far as that is known?
  bool in_shared(const void* address, std::size_t bytes) const;
  // In the window, asked for or not?
  bool in_window(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    const auto low = reinterpret_cast<std::uintptr_t>(shared_window);
    return place >= low && place - low <= kSharedWindowBytes;
  }
  // "byte 16 of dynamic shared memory"
  std::string describe_shared(const void* address) const;

  unsigned char* dynamic_shared = nullptr;
  std::size_t dynamic_shared_bytes = 0;
  // Set while the library reads or writes memory for a kernel: the kernel's line, for crash
  // reports.
  Place touching;
  const char* static_shared = nullptr;  // where __shared__ variables lie; null if not known
  std::size_t static_shared_bytes = 0;

  unsigned char* shared_window = nullptr;

  Mbarriers mbarriers{*this};
  BulkCopies bulk_copies{*this};
  NamedBarriers named_barriers{*this};
  RegisterBudget register_budget{*this};
  SharedLines lines;
  FiberQueue cluster_waiting;
  std::vector<TilePiece> tile_pieces;  // of the tile at hand

  long long ticks = 0;  // of clock64()

  // Set by the watchdog: a thread that polls ends the block.
  std::atomic<bool> give_up{false};
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
  void wait_at(Operation operation, Place place) {
    current_->state = State::kWaiting;
    current_->operation = operation;
    current_->place = place;
  }
  void switch_to_next(bool leaving);
  void release_barrier();
  void leave_warp(Fiber& fiber);
  void leave_barrier();
  void check_copies_of(Fiber& fiber);
  std::string describe_wait(const Fiber& fiber) const;
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
  std::array<Warpgroup, kMaxThreads / kWarpgroupThreads> warpgroups_;
  std::unique_ptr<WgmmaTiles> wgmma_tiles_;
  Cluster* cluster_ = nullptr;
  int rank_ = 0;
  uint3 index_{};
  bool in_thread_ = false;  // one of the threads is running
  std::uint64_t refused_at_ = 0;
  int refusals_ = 0;
  std::uint64_t polled_at_ = 0;
  int idle_polls_ = 0;
  bool wants_to_settle_ = false;
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
void compute_stmatrix(Warp& warp, bool transposed);
void compute_elect(Warp& warp);
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
  const Sync sync{SyncKind::kWarp, operation, 0, mask, place};
  if (Observer* o = observer()) o->arrive(*this, current_->linear, sync);
  if (joined->arrived == (mask & w.live)) {
    finish_collective(w, *joined);
  } else {
    wait_at(operation, place);
    joined->waiting.push_back(current_);
    switch_to_next(false);
  }
  if (Observer* o = observer()) o->pass(*this, current_->linear, sync);
}

}  // namespace emulator
