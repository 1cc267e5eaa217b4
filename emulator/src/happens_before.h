// Which of two accesses comes first: vector clocks with one entry for each warp of a cluster (or of
// a block alone), and of other blocks for what flags in global memory told of them. Lanes of a warp
// share a clock, which counts their meetings: what two lanes do between the same two is unordered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace emulator {

// A moment of a thread.
struct Stamp {
  std::uint32_t warp = 0;   // counted through the whole grid
  std::uint32_t clock = 0;  // 0: never
  std::uint8_t lane = 0;
};

class HappensBefore {
 public:
  // What a warp knows of others, or what a barrier passes on: up to which clock of each warp.
  using Knowledge = std::map<std::uint32_t, std::uint32_t>;

  void begin_launch(std::uint32_t warps_per_block);
  // The blocks first .. first + count - 1 run from here on.
  void begin_cluster(std::uint32_t first_block, std::uint32_t count);

  std::uint32_t warp_of(std::uint32_t block, int thread) const {
    return block * warps_per_block_ + static_cast<std::uint32_t>(thread) / 32;
  }
  std::uint32_t block_of(std::uint32_t warp) const { return warp / warps_per_block_; }
  Stamp now(std::uint32_t warp, int thread) const {
    return {warp, own_clock(warp), static_cast<std::uint8_t>(thread % 32)};
  }
  // Is `earlier`, of the same launch, over for what `later` does?
  bool is_ordered(const Stamp& earlier, const Stamp& later) const;

  // Lanes of a warp have met.
  void meet_in_warp(std::uint32_t warp) { ++clock_of(warp, warp); }
  // All threads of these warps have met.
  void meet(std::uint32_t first_warp, std::uint32_t count);
  // Passes on what the warp did so far.
  void release(std::uint32_t warp, Knowledge* to);
  void acquire(std::uint32_t warp, const Knowledge& from);
  // __threadfence(), and a relaxed atomic, which passes on what lies before the last fence.
  void fence(std::uint32_t warp);
  void release_fenced(std::uint32_t warp, Knowledge* to);

  static void join(const Knowledge& from, Knowledge* to);

 private:
  struct Warp {
    std::vector<std::uint32_t> clocks;  // of the warps that run together
    Knowledge foreign;                  // of blocks before
    Knowledge fenced;
  };

  std::uint32_t own_clock(std::uint32_t warp) const {
    return warps_[warp - first_warp_].clocks[warp - first_warp_];
  }
  std::uint32_t& clock_of(std::uint32_t warp, std::uint32_t other) {
    return warps_[warp - first_warp_].clocks[other - first_warp_];
  }

  std::uint32_t warps_per_block_ = 1;
  std::uint32_t first_warp_ = 0;
  std::vector<Warp> warps_;
};

}  // namespace emulator
