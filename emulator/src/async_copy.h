// The cp.async copies of one thread that have been issued and not waited for.
#pragma once

#include <emulator/place.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace emulator {

struct Mbarrier;

class AsyncCopies {
 public:
  static constexpr std::size_t kBytes = 16;

  // A new block: nothing is under way.
  void reset(int thread);
  // Makes the destination garbage; the copy itself is done at the wait. A null source means zeros.
  void issue(void* to, const void* from, Place place);
  // An arrival at a barrier that lands behind the copies issued so far. Returns its position.
  std::uint32_t issue_arrival(Mbarrier& barrier, Place place);
  void commit() { ++current_group_; }
  // Lands the committed groups but for the newest `pending_groups`.
  void wait(int pending_groups);
  // Lands everything up to a position.
  void land_until(std::uint32_t position);
  bool has_landed(std::uint32_t position) const { return landed_ >= position; }
  std::uint32_t pending() const { return issued_ - landed_; }
  // Of those, the copies that no arrival at a barrier follows.
  std::uint32_t unsignalled() const { return issued_ - std::max(landed_, signalled_); }
  Place oldest_place() const { return ring_[landed_ % kCapacity].place; }

 private:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    Mbarrier* barrier = nullptr;  // an arrival, no copy
    Place place;
    std::uint32_t group = 0;
  };

  void push(const Copy& copy);
  void land_oldest();

  // When the ring is full the oldest copy lands early, which a GPU may do as well.
  static constexpr std::uint32_t kCapacity = 128;

  std::uint32_t issued_ = 0;  // both count up; a copy's slot is its number modulo the capacity
  std::uint32_t landed_ = 0;
  std::uint32_t current_group_ = 0;  // groups committed so far
  std::uint32_t signalled_ = 0;      // position of the last arrival
  int thread_ = 0;
  std::array<Copy, kCapacity> ring_;
};

}  // namespace emulator
