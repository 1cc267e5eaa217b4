// mbarriers: phases that end when all arrivals and all announced bytes have come.
//
// The 8 bytes in shared memory hold a mark and a number; the state is here, so that a report can
// say who waits for what, and so that bytes that were never initialised, or were overwritten, are
// known.
#pragma once

#include <emulator/place.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "fiber.h"

namespace emulator {

class Block;
struct Mbarrier;

// Tells the observer of an arrival; of a bulk load thread -1.
void tell_arrival(Block& block, int thread, const std::uint64_t* barrier, Place place);

struct Mbarrier {
  // A cp.async.mbarrier.arrive.noinc: lands with the thread's copies up to `position`.
  struct AsyncArrival {
    int thread = 0;
    std::uint32_t position = 0;
  };

  std::uint64_t* address = nullptr;
  int count = 0;            // arrivals of a phase
  int pending = 0;          // of those, how many are missing
  std::int64_t bytes = 0;   // announced and not here yet
  std::int64_t coming = 0;  // under way by copies
  std::uint32_t phase = 0;  // phases that have ended
  int init_thread = 0;
  bool is_fenced = false;  // mbarrier_init_fence() since its init
  FiberQueue waiting;
  std::vector<AsyncArrival> async_arrivals;
};

class Mbarriers {
 public:
  explicit Mbarriers(Block& block) : block_(block) {}
  void reset() { all_.clear(); }

  void init(std::uint64_t* address, int arrivals, Place place);
  void fence(int thread);
  // The barrier there; a fault if there is none. `by_bulk_copy`: its init must have been fenced.
  Mbarrier& at(std::uint64_t* address, const char* function, bool by_bulk_copy, Place place);

  // One arrival, which announces some bytes first.
  void arrive(Mbarrier& barrier, std::int64_t expected_bytes, Place place);
  // Bytes of a copy that were `coming` are here.
  void complete_bytes(Mbarrier& barrier, std::int64_t bytes, Place place);
  // True when the phase has ended. False, only if `may_refuse`, when nobody else can go on.
  bool wait(std::uint64_t* address, std::uint32_t parity, bool may_refuse, Place place);

  std::size_t size() const { return all_.size(); }
  Mbarrier& operator[](std::size_t i) { return all_[i]; }
  // Wakes all that wait in try_wait, with the answer no; false if there are none.
  bool refuse_waiting();

  // "mbarrier at byte 16 of dynamic shared memory, parity 0: 1 of 2 arrivals missing, ..."
  std::string describe(const std::uint64_t* address, std::uint32_t parity) const;

 private:
  const Mbarrier* find(const std::uint64_t* address) const;
  void end_phase_if_complete(Mbarrier& barrier, Place place);

  Block& block_;
  std::deque<Mbarrier> all_;  // a deque: waiting fibers keep references
};

}  // namespace emulator
