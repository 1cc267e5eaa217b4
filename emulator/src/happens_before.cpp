#include "happens_before.h"

#include <algorithm>

namespace emulator {

void HappensBefore::begin_launch(std::uint32_t warps_per_block) {
  warps_per_block_ = warps_per_block;
  warps_.clear();
}

void HappensBefore::begin_cluster(std::uint32_t first_block, std::uint32_t count) {
  first_warp_ = first_block * warps_per_block_;
  const std::size_t total = std::size_t{count} * warps_per_block_;
  warps_.assign(total, Warp{std::vector<std::uint32_t>(total, 0), {}, {}});
  for (std::size_t i = 0; i < total; ++i) warps_[i].clocks[i] = 1;
}

bool HappensBefore::is_ordered(const Stamp& earlier, const Stamp& later) const {
  if (earlier.warp == later.warp) {
    return earlier.lane == later.lane || earlier.clock < later.clock;
  }
  const Warp& warp = warps_[later.warp - first_warp_];
  const std::uint32_t index = earlier.warp - first_warp_;  // wraps for blocks before
  if (index < warps_.size()) return warp.clocks[index] >= earlier.clock;
  const auto known = warp.foreign.find(earlier.warp);
  return known != warp.foreign.end() && known->second >= earlier.clock;
}

void HappensBefore::join(const Knowledge& from, Knowledge* to) {
  for (const auto& [warp, clock] : from) {
    std::uint32_t& known = (*to)[warp];
    known = std::max(known, clock);
  }
}

void HappensBefore::meet(std::uint32_t first_warp, std::uint32_t count) {
  std::vector<std::uint32_t> clocks(warps_.size(), 0);
  Knowledge foreign;
  Knowledge fenced;
  for (std::uint32_t w = first_warp; w < first_warp + count; ++w) {
    const Warp& warp = warps_[w - first_warp_];
    for (std::size_t i = 0; i < clocks.size(); ++i) clocks[i] = std::max(clocks[i], warp.clocks[i]);
    join(warp.foreign, &foreign);
    join(warp.fenced, &fenced);
  }
  for (std::uint32_t w = first_warp; w < first_warp + count; ++w) {
    warps_[w - first_warp_] = {clocks, foreign, fenced};
    ++clock_of(w, w);
  }
}

void HappensBefore::release(std::uint32_t warp, Knowledge* to) {
  const Warp& own = warps_[warp - first_warp_];
  join(own.foreign, to);
  for (std::uint32_t i = 0; i < own.clocks.size(); ++i) {
    if (own.clocks[i] == 0) continue;
    std::uint32_t& known = (*to)[first_warp_ + i];
    known = std::max(known, own.clocks[i]);
  }
  meet_in_warp(warp);
}

void HappensBefore::acquire(std::uint32_t warp, const Knowledge& from) {
  Warp& own = warps_[warp - first_warp_];
  for (const auto& [other, clock] : from) {
    const std::uint32_t index = other - first_warp_;
    std::uint32_t& known = index < own.clocks.size() ? own.clocks[index] : own.foreign[other];
    known = std::max(known, clock);
  }
}

void HappensBefore::fence(std::uint32_t warp) {
  Knowledge now;
  release(warp, &now);
  join(now, &warps_[warp - first_warp_].fenced);
}

void HappensBefore::release_fenced(std::uint32_t warp, Knowledge* to) {
  join(warps_[warp - first_warp_].fenced, to);
}

}  // namespace emulator
