#include "named_barrier.h"

#include <emulator/hopper.h>

#include <utility>

#include "block.h"

namespace emulator {

void NamedBarriers::arrive(int id, int threads, bool waits, Place place) {
  if (id < 1 || id >= kCount) {
    block_.fail("out of bounds", "named barrier " + std::to_string(id) + " is not one of 1 to 15",
                place);
  }
  if (threads < kLanes || threads % kLanes != 0 || threads > block_.num_threads()) {
    block_.fail("out of bounds",
                "named barrier " + std::to_string(id) + " for " + std::to_string(threads) +
                    " threads: whole warps of a block of " + std::to_string(block_.num_threads()),
                place);
  }
  Barrier& barrier = all_[static_cast<std::size_t>(id)];
  if (barrier.arrived == 0) {
    barrier.threads = threads;
    barrier.place = place;
  } else if (barrier.threads != threads) {
    std::string sentence = "threads meet at named barrier " + std::to_string(id) + " for " +
                           std::to_string(barrier.threads) + " threads (" +
                           emulator::describe(barrier.place) + ") and for " +
                           std::to_string(threads);
    block_.fail("divergence", std::move(sentence), place);
  }
  const Sync sync{SyncKind::kNamedBarrier, Operation::kNamedBarrier,
                  static_cast<std::uintptr_t>(id), 0, place};
  if (Observer* o = observer()) o->arrive(block_, block_.current().linear, sync);
  if (++barrier.arrived == threads) {
    barrier.arrived = 0;
    if (Observer* o = observer()) {
      o->complete(block_, sync);
      if (waits) o->pass(block_, block_.current().linear, sync);
    }
    block_.wake(barrier.waiting);
    return;
  }
  if (!waits) {
    block_.advance();
    return;
  }
  block_.current().detail = static_cast<std::uint32_t>(id);
  block_.wait_in(barrier.waiting, Operation::kNamedBarrier, place);
  if (Observer* o = observer()) o->pass(block_, block_.current().linear, sync);
}

std::string NamedBarriers::describe(int id) const {
  const Barrier& barrier = all_[static_cast<std::size_t>(id)];
  return "barrier " + std::to_string(id) + ": " +
         std::to_string(barrier.threads - barrier.arrived) + " of " +
         std::to_string(barrier.threads) + " threads missing";
}

void named_barrier(int id, int threads, bool waits, Place place) {
  t_block->named_barriers.arrive(id, threads, waits, place);
}

}  // namespace emulator
