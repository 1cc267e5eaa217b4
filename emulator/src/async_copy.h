// The cp.async copies of one thread that have been issued and not waited for.
#pragma once

#include <emulator/place.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace emulator {

class AsyncCopies {
 public:
  static constexpr std::size_t kBytes = 16;

  // Makes the destination garbage; the copy itself is done at the wait. A null source means zeros.
  void issue(void* to, const void* from, Place place);
  void commit() { ++current_group_; }
  // Lands the committed groups but for the newest `pending_groups`.
  void wait(int pending_groups);
  std::uint32_t pending() const { return issued_ - landed_; }
  Place oldest_place() const { return ring_[landed_ % kCapacity].place; }
  void clear() { issued_ = landed_ = current_group_ = 0; }

 private:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    Place place;
    std::uint32_t group = 0;
  };

  void land_oldest();

  // When the ring is full the oldest copy lands early, which a GPU may do as well.
  static constexpr std::uint32_t kCapacity = 128;

  std::uint32_t issued_ = 0;  // both count up; a copy's slot is its number modulo the capacity
  std::uint32_t landed_ = 0;
  std::uint32_t current_group_ = 0;  // groups committed so far
  std::array<Copy, kCapacity> ring_;
};

}  // namespace emulator
