#include "mbarrier.h"

#include <emulator/hopper.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "block.h"

namespace emulator {

namespace {

constexpr std::uint64_t kMark = 0x6d42617200000000u;
constexpr std::uint64_t kNumber = 0xffffffffu;
constexpr std::int64_t kMaxCount = (1 << 20) - 1;  // of arrivals and of bytes

std::uint64_t load(const std::uint64_t* address) {
  std::uint64_t word = 0;
  std::memcpy(&word, address, sizeof word);
  return word;
}

Sync sync_of(const std::uint64_t* barrier, Place place) {
  return {SyncKind::kMbarrier, Operation::kMbarrierWait, reinterpret_cast<std::uintptr_t>(barrier),
          0, place};
}

std::string where(const Block& block, const std::uint64_t* address) {
  return "the mbarrier at " + block.describe_shared(address);
}

}  // namespace

void tell_arrival(Block& block, int thread, const std::uint64_t* barrier, Place place) {
  if (Observer* o = observer()) o->arrive(block, thread, sync_of(barrier, place));
}

const Mbarrier* Mbarriers::find(const std::uint64_t* address) const {
  const std::uint64_t number = load(address) & kNumber;
  if (number < all_.size() && all_[number].address == address) return &all_[number];
  for (const Mbarrier& barrier : all_) {
    if (barrier.address == address) return &barrier;
  }
  return nullptr;
}

void Mbarriers::init(std::uint64_t* address, int arrivals, Place place) {
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof *address != 0) {
    misaligned("mbarrier_init", address, sizeof *address, place);
  }
  if (!block_.in_shared(address, sizeof *address)) {
    block_.fail("out of bounds", "mbarrier_init: the barrier is not in shared memory", place);
  }
  if (arrivals < 1 || arrivals > kMaxCount) {
    block_.fail("out of bounds",
                "mbarrier_init: " + std::to_string(arrivals) + " arrivals are not 1 to 1048575",
                place);
  }
  std::size_t number = 0;
  while (number < all_.size() && all_[number].address != address) ++number;
  if (number == all_.size()) all_.emplace_back();
  Mbarrier& barrier = all_[number];
  if (barrier.pending != barrier.count || barrier.coming != 0 || !barrier.waiting.empty()) {
    std::string sentence = where(block_, address) + " is initialised again while it is in use";
    block_.fail("mbarrier", std::move(sentence), place);
  }
  const std::uint64_t word = kMark | number;
  std::memcpy(address, &word, sizeof word);
  barrier = {};
  barrier.address = address;
  barrier.count = barrier.pending = arrivals;
  barrier.init_thread = block_.current().linear;
  block_.advance();
}

void Mbarriers::fence(int thread) {
  for (Mbarrier& barrier : all_) {
    if (barrier.init_thread == thread) barrier.is_fenced = true;
  }
}

Mbarrier& Mbarriers::at(std::uint64_t* address,
                        const char* function,
                        bool by_bulk_copy,
                        Place place) {
  Block& caller = *t_block;
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof *address != 0) {
    misaligned(function, address, sizeof *address, place);
  }
  if (!block_.in_shared(address, sizeof *address)) {
    caller.fail("out of bounds", std::string(function) + ": the barrier is not in shared memory",
                place);
  }
  auto* barrier = const_cast<Mbarrier*>(find(address));
  if (barrier == nullptr) {
    std::string sentence = std::string(function) + ": " + where(block_, address) +
                           " was never initialised, or not yet";
    caller.fail("mbarrier", std::move(sentence), place);
  }
  if ((load(address) & ~kNumber) != kMark) {
    std::string sentence = std::string(function) + ": " + where(block_, address) +
                           " was overwritten: its 8 bytes are used as data";
    caller.fail("mbarrier", std::move(sentence), place);
  }
  if (by_bulk_copy && !barrier->is_fenced) {
    std::string sentence = std::string(function) + ": " + where(block_, address) +
                           " was initialised without mbarrier_init_fence()";
    caller.fail("missing fence", std::move(sentence), place);
  }
  return *barrier;
}

void Mbarriers::arrive(Mbarrier& barrier, std::int64_t expected_bytes, Place place) {
  if (expected_bytes < 0 || barrier.bytes + expected_bytes > kMaxCount) {
    block_.report("mbarrier",
                  "a phase may expect 0 to 1048575 bytes, not " +
                      std::to_string(barrier.bytes + expected_bytes),
                  place);
    return;
  }
  if (barrier.pending == 0) {
    block_.report("mbarrier",
                  where(block_, barrier.address) + " gets more arrivals in a phase than the " +
                      std::to_string(barrier.count) +
                      " that it was initialised for; the phase still waits for " +
                      std::to_string(barrier.bytes) + " bytes",
                  place);
    return;
  }
  barrier.bytes += expected_bytes;
  --barrier.pending;
  block_.advance();
  end_phase_if_complete(barrier, place);
}

void Mbarriers::complete_bytes(Mbarrier& barrier, std::int64_t bytes, Place place) {
  barrier.coming -= bytes;
  barrier.bytes -= bytes;
  end_phase_if_complete(barrier, place);
}

void Mbarriers::end_phase_if_complete(Mbarrier& barrier, Place place) {
  if (barrier.pending != 0 || barrier.bytes > 0) return;
  if (barrier.bytes < 0) {
    std::string sentence = where(block_, barrier.address) + " gets " +
                           std::to_string(-barrier.bytes) +
                           " bytes more in a phase than expect_tx announced";
    block_.report("mbarrier", std::move(sentence), place);
    return;
  }
  if (barrier.coming != 0) {
    std::string sentence = "a phase of " + where(block_, barrier.address) +
                           " ends while copies of " + std::to_string(barrier.coming) +
                           " bytes are under way to it that no expect_tx announced";
    block_.report("mbarrier", std::move(sentence), place);
    return;
  }
  ++barrier.phase;
  barrier.pending = barrier.count;
  if (Observer* o = observer()) o->complete(block_, sync_of(barrier.address, place));
  auto& arrivals = barrier.async_arrivals;
  arrivals.erase(
      std::remove_if(arrivals.begin(), arrivals.end(),
                     [this](const Mbarrier::AsyncArrival& arrival) {
                       return block_.async_copies_of(arrival.thread).has_landed(arrival.position);
                     }),
      arrivals.end());
  block_.wake(barrier.waiting);
}

bool Mbarriers::wait(std::uint64_t* address, std::uint32_t parity, bool may_refuse, Place place) {
  Mbarrier& barrier = at(address, may_refuse ? "mbarrier_try_wait" : "mbarrier_wait", false, place);
  if (parity > 1) {
    block_.fail("mbarrier",
                "mbarrier_wait: the parity is " + std::to_string(parity) +
                    ", not 0 or 1: the lowest bit of the number of the phase",
                place);
  }
  Fiber& fiber = block_.current();
  if ((barrier.phase & 1u) != parity) {
    if (Observer* o = observer()) o->pass(block_, fiber.linear, sync_of(address, place));
    return true;
  }
  fiber.barrier = address;
  fiber.detail = parity;
  fiber.refused = false;
  block_.wait_in(barrier.waiting,
                 may_refuse ? Operation::kMbarrierTryWait : Operation::kMbarrierWait, place);
  Observer* const watching = observer();
  if (watching != nullptr && !fiber.refused) {
    watching->pass(block_, fiber.linear, sync_of(address, place));
  }
  return !fiber.refused;
}

bool Mbarriers::refuse_waiting() {
  bool any = false;
  for (Mbarrier& barrier : all_) {
    FiberQueue stay;
    FiberQueue refused;
    while (Fiber* fiber = barrier.waiting.pop()) {
      const bool polls = fiber->operation == Operation::kMbarrierTryWait;
      fiber->refused = polls;
      any |= polls;
      (polls ? refused : stay).push_back(fiber);
    }
    barrier.waiting.splice_back(stay);
    block_.resume_later(refused);
  }
  return any;
}

std::string Mbarriers::describe(const std::uint64_t* address, std::uint32_t parity) const {
  const Mbarrier* barrier = find(address);
  if (barrier == nullptr) return "";
  std::string text = "mbarrier at " + block_.describe_shared(address) + ", parity " +
                     std::to_string(parity) + ": " + std::to_string(barrier->pending) + " of " +
                     std::to_string(barrier->count) + " arrivals missing";
  if (barrier->bytes != 0) {
    text += ", " + std::to_string(barrier->bytes) + " bytes missing";
    text += barrier->coming == 0 ? ", no copy under way" : "";
  }
  return text;
}

// ---- What device code calls.

void mbarrier_init(std::uint64_t* barrier, int arrivals, Place place) {
  t_block->mbarriers.init(barrier, arrivals, place);
}

void mbarrier_init_fence() {
  t_block->mbarriers.fence(t_block->current().linear);
  if (Observer* o = observer()) {
    o->fence(*t_block, t_block->current().linear, FenceKind::kMbarrierInit);
  }
}

void mbarrier_arrive(std::uint64_t* barrier, int expected_bytes, Place place) {
  Mbarriers& all = t_block->mbarriers;
  Mbarrier& there = all.at(barrier, "mbarrier_arrive", false, place);
  tell_arrival(*t_block, t_block->current().linear, barrier, place);
  all.arrive(there, expected_bytes, place);
}

void cp_async_mbarrier_arrive(std::uint64_t* address, Place place) {
  Block& block = *t_block;
  Mbarrier& barrier = block.mbarriers.at(address, "cp_async_mbarrier_arrive_noinc", false, place);
  AsyncCopies& copies = block.async_copies();
  const std::uint32_t position = copies.issue_arrival(barrier, place);
  barrier.async_arrivals.push_back({block.current().linear, position});
}

bool mbarrier_try_wait(std::uint64_t* barrier, std::uint32_t parity, Place place) {
  return t_block->mbarriers.wait(barrier, parity, true, place);
}

void mbarrier_wait(std::uint64_t* barrier, std::uint32_t parity, Place place) {
  (void)t_block->mbarriers.wait(barrier, parity, false, place);
}

}  // namespace emulator
