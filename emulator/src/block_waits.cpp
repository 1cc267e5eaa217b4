// A block whose threads wait: what lands then, who is told no, and what the report says.
#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>

#include "block.h"
#include "cluster.h"

namespace emulator {

bool Block::settle() {
  t_block = this;
  blockIdx = index_;
  const std::size_t count = mbarriers.size();
  const std::size_t first = order_ == Order::kShuffle && count > 0 ? random() % count : 0;
  bool moved = false;
  for (std::size_t i = 0; i < count && !moved && !failed(); ++i) {
    const std::size_t turn = (first + i) % count;
    Mbarrier& barrier = mbarriers[order_ == Order::kReverse ? count - 1 - turn : turn];
    if (barrier.waiting.empty()) continue;
    bulk_copies.land(barrier);
    const std::vector<Mbarrier::AsyncArrival> arrivals = barrier.async_arrivals;
    for (const Mbarrier::AsyncArrival& arrival : arrivals) {
      // What is not needed for anybody to go on lands later.
      if (!failed() && !can_run()) async_copies_of(arrival.thread).land_until(arrival.position);
    }
    moved = can_run();
  }
  t_block = nullptr;
  return moved;
}

bool Block::refuse_polls(bool others_moved) {
  constexpr int kPatience = 1000;
  if (others_moved) return false;
  const std::uint64_t now = progress.load(std::memory_order_relaxed);
  refusals_ = now == refused_at_ ? refusals_ + 1 : 0;
  refused_at_ = now;
  return refusals_ < kPatience && mbarriers.refuse_waiting();
}

void Block::poll(Operation operation, Place place) {
  constexpr int kPatience = 64;
  queue_current(ready_, operation, place);
  const std::uint64_t now = progress.load(std::memory_order_relaxed);
  idle_polls_ = now == polled_at_ ? idle_polls_ + 1 : 0;
  polled_at_ = now;
  if (give_up.load(std::memory_order_relaxed) && operation == Operation::kLoadAcquire) {
    fail("hang",
         "the value that load_acquire() waits for never comes: a block may wait for blocks of "
         "smaller index, of its cluster and of earlier kernels only",
         place, true);
  }
  // Whoever polls can always run: what others of the block wait for must land all the same.
  const bool idle = idle_polls_ >= kPatience;
  if (idle) {
    idle_polls_ = 0;
    wants_to_settle_ = true;
    sched_yield();
  }
  if (idle || cluster_->size() > 1) {
    switch_context(current_->context, own_context_);
  } else {
    switch_away();
  }
}

void Block::settle_if_asked() {
  if (!wants_to_settle_) return;
  wants_to_settle_ = false;
  if (!settle()) (void)refuse_polls(false);
}

void Block::finish() {
  if (bulk_copies.loads_under_way() == 0) return;
  set_block_fault("missing wait", "the block ended with " +
                                      std::to_string(bulk_copies.loads_under_way()) +
                                      " bulk copies that nobody waited for");
  fault_.text += " at " + describe(bulk_copies.oldest_load());
}

// What a thread must not leave behind.
void Block::check_copies_of(Fiber& fiber) {
  const AsyncCopies& copies = async_copies_of(fiber.linear);
  if (copies.unsignalled() != 0) {
    fiber.place = copies.oldest_place();
    fail_at("missing wait",
            "a thread returned with " + std::to_string(copies.unsignalled()) +
                " cp.async copies that it never waited for",
            fiber);
  }
  const Warpgroup& group = warpgroup(fiber.linear);
  if (group.pending(fiber.linear) != 0) {
    fiber.place = group.oldest_place();
    fail_at("missing wait",
            "a thread returned with " + std::to_string(group.pending(fiber.linear)) +
                " wgmmas that it never waited for",
            fiber);
  }
  Place place;
  const int unread = bulk_copies.leave(fiber.linear, &place);
  if (unread != 0) {
    fiber.place = place;
    fail_at("missing wait",
            "a thread returned with " + std::to_string(unread) +
                " bulk stores that may still have to read shared memory: bulk_commit() and "
                "bulk_wait_read<0>() come first",
            fiber);
  }
}

std::string Block::describe_wait(const Fiber& fiber) const {
  const std::string place = " (" + describe(fiber.place) + ")";
  switch (fiber.operation) {
    case Operation::kMbarrierWait:
    case Operation::kMbarrierTryWait:
      return std::string("wait at ") + name_of(fiber.operation) + place + ", " +
             mbarriers.describe(fiber.barrier, fiber.detail);
    case Operation::kNamedBarrier:
      return "wait at named_barrier_sync" + place + ", " +
             named_barriers.describe(static_cast<int>(fiber.detail));
    case Operation::kSetmaxnreg:
      return "wait at setmaxnreg" + place + ", " + register_budget.describe();
    default:
      return std::string("wait at ") + name_of(fiber.operation) + place;
  }
}

void Block::refuse_async_read(SharedLines::Problem problem,
                              const char* function,
                              const void* address,
                              Place place) {
  if (problem == SharedLines::Problem::kUnderWay) {
    std::string sentence = std::string(function) + " reads " + describe_shared(address) +
                           ", which a copy under way has not filled yet";
    fail("missing wait", std::move(sentence), place);
  }
  if (problem == SharedLines::Problem::kNotFenced && options().proxy_fences) {
    std::string sentence = std::string(function) + " reads " + describe_shared(address) +
                           ", written without a fence_proxy_async() since";
    fail("missing fence", std::move(sentence), place);
  }
}

// ---- The shared window: static variables from 0 on, dynamic memory at its end.

namespace {

// Low bits are those of the address, since the swizzle looks at them.
std::uintptr_t window_of_static(const char* low) {
  return reinterpret_cast<std::uintptr_t>(low) / 1024 * 1024;
}

}  // namespace

std::uint32_t Block::shared_offset(const void* address) const {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const auto window = reinterpret_cast<std::uintptr_t>(shared_window);
  if (place >= window && place - window < kSharedWindowBytes) {
    return static_cast<std::uint32_t>(place - window);
  }
  const auto low = reinterpret_cast<std::uintptr_t>(static_shared);
  if (static_shared != nullptr && place >= low && place - low < static_shared_bytes) {
    return static_cast<std::uint32_t>(place - window_of_static(static_shared));
  }
  return kSharedWindowBytes;
}

unsigned char* Block::shared_at(std::uint32_t offset) const {
  unsigned char* in_window = shared_window + offset;
  if (offset < kSharedWindowBytes && in_window >= dynamic_shared &&
      in_window < dynamic_shared + dynamic_shared_bytes) {
    return in_window;
  }
  const std::uintptr_t place = window_of_static(static_shared) + offset;
  const auto low = reinterpret_cast<std::uintptr_t>(static_shared);
  if (static_shared != nullptr && place >= low && place - low < static_shared_bytes) {
    return reinterpret_cast<unsigned char*>(place);
  }
  return nullptr;
}

std::string Block::describe_shared(const void* address) const {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  const auto dynamic = reinterpret_cast<std::uintptr_t>(dynamic_shared);
  if (place >= dynamic && place - dynamic < dynamic_shared_bytes) {
    return "byte " + std::to_string(place - dynamic) + " of dynamic shared memory";
  }
  char text[64];
  std::snprintf(text, sizeof text, "static shared address %p", address);
  return text;
}

WgmmaTiles& Block::wgmma_tiles() {
  if (wgmma_tiles_ == nullptr) wgmma_tiles_ = std::make_unique<WgmmaTiles>();
  return *wgmma_tiles_;
}

// ---- What device code calls.

std::uint32_t shared_address(const void* pointer, Place place) {
  const std::uint32_t offset = t_block->shared_offset(pointer);
  if (offset >= kSharedWindowBytes) {
    t_block->fail("out of bounds", "an address that should lie in shared memory doesn't", place);
  }
  return offset;
}

namespace {

void tell_flag(const std::int32_t* flag, MemoryOrder order, Place place, const void* pc) {
  if (observer() == nullptr) return;
  Access access;
  access.address = flag;
  access.bytes = sizeof *flag;
  access.via = Via::kAtomic;
  access.reads = true;
  access.writes = order == MemoryOrder::kRelease;
  access.order = order;
  access.place = place;
  access.pc = reinterpret_cast<std::uintptr_t>(pc);
  tell_access(access);
}

}  // namespace

int load_acquire(const std::int32_t* flag, Place place) {
  t_block->poll(Operation::kLoadAcquire, place);
  tell_flag(flag, MemoryOrder::kAcquire, place, nullptr);
  return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

// NOLINTNEXTLINE(readability-non-const-parameter): the builtin writes it
void add_release(std::int32_t* flag, int value) {
  tell_flag(flag, MemoryOrder::kRelease, {}, __builtin_return_address(0));
  __atomic_fetch_add(flag, value, __ATOMIC_RELEASE);
  t_block->advance();
}

// Which lane it is, nobody may rely on: the first one in forward order only.
void compute_elect(Warp& warp) {
  const Options& o = options();
  const auto lane = o.order == Order::kForward   ? 0u
                    : o.order == Order::kReverse ? 31u
                                                 : static_cast<unsigned>(o.seed * 7 % kLanes);
  for (unsigned i = 0; i < kLanes; ++i) warp.out[0][i] = i == lane ? 1 : 0;
}

bool elect_one(Place place) {
  Block& block = *t_block;
  Warp& warp = block.warp();
  const int lane = block.lane();
  block.collective(Operation::kElect, 0xffffffffu, place);
  return warp.out[0][lane] != 0;
}

}  // namespace emulator
