#include "cost_model.h"

#include <algorithm>

namespace emulator {

namespace {

constexpr int kLanesOfWarp = 32;
constexpr std::uintptr_t kBankBytes = 4;
constexpr int kBanks = 32;

bool takes_part(const WarpRequest& request, int lane) {
  return (request.lanes >> lane & 1u) != 0;
}

}  // namespace

void list_sectors(const WarpRequest& request, std::vector<std::uintptr_t>* sectors) {
  sectors->clear();
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    if (!takes_part(request, lane)) continue;
    const std::uintptr_t first = request.address[static_cast<std::size_t>(lane)] / kSectorBytes;
    const std::uintptr_t last =
        (request.address[static_cast<std::size_t>(lane)] + request.bytes - 1) / kSectorBytes;
    for (std::uintptr_t sector = first; sector <= last; ++sector) {
      // Neighbouring lanes touch neighbouring sectors: look from the end.
      if (std::find(sectors->rbegin(), sectors->rend(), sector) == sectors->rend()) {
        sectors->push_back(sector);
      }
    }
  }
}

int least_sectors(const WarpRequest& request) {
  std::array<std::uintptr_t, kLanesOfWarp> starts{};
  std::size_t count = 0;
  for (int lane = 0; lane < kLanesOfWarp; ++lane) {
    if (takes_part(request, lane))
      starts[count++] = request.address[static_cast<std::size_t>(lane)];
  }
  std::sort(starts.begin(), starts.begin() + count);
  std::uintptr_t bytes = 0;
  std::uintptr_t end = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uintptr_t from = std::max(starts[i], end);
    const std::uintptr_t to = starts[i] + request.bytes;
    if (to > from) bytes += to - from;
    end = std::max(end, to);
  }
  return static_cast<int>((bytes + kSectorBytes - 1) / kSectorBytes);
}

namespace {

// Words that the lanes first .. first + num - 1 want of the bank that they want most of.
int passes_of(const WarpRequest& request, int first, int num) {
  constexpr std::size_t kMostWords = kLanesOfWarp * 4;
  std::array<std::array<std::uintptr_t, kMostWords>, kBanks> words{};
  std::array<int, kBanks> count{};
  for (int lane = first; lane < first + num; ++lane) {
    if (!takes_part(request, lane)) continue;
    const std::uintptr_t start = request.address[static_cast<std::size_t>(lane)];
    for (std::uintptr_t word = start / kBankBytes; word <= (start + request.bytes - 1) / kBankBytes;
         ++word) {
      const std::size_t bank = word % kBanks;
      auto& known = words[bank];
      auto* end = known.data() + count[bank];
      if (std::find(known.data(), end, word) != end) continue;
      known[static_cast<std::size_t>(count[bank]++)] = word;
    }
  }
  return *std::max_element(count.begin(), count.end());
}

}  // namespace

BankPasses count_bank_passes(const WarpRequest& request) {
  const int lanes_each = request.bytes > 8 ? 8 : request.bytes > 4 ? 16 : kLanesOfWarp;
  BankPasses result;
  for (int first = 0; first < kLanesOfWarp; first += lanes_each) {
    const int passes = passes_of(request, first, lanes_each);
    result.passes += passes;
    result.least += passes > 0 ? 1 : 0;
  }
  return result;
}

BankPasses count_copy_passes(const WarpRequest& request) {
  constexpr int kBytesOfPass = kBanks * static_cast<int>(kBankBytes);
  const int bytes = request.num_lanes() * static_cast<int>(request.bytes);
  return {passes_of(request, 0, kLanesOfWarp), (bytes + kBytesOfPass - 1) / kBytesOfPass};
}

void CacheModel::use(std::uintptr_t sector, bool writes) {
  const auto found = places_.find(sector);
  if (found != places_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    found->second->dirty |= writes;
    return;
  }
  if (!writes) ++read_;
  entries_.push_front({sector, writes});
  places_[sector] = entries_.begin();
  if (entries_.size() <= capacity_) return;
  if (entries_.back().dirty) ++written_;
  places_.erase(entries_.back().sector);
  entries_.pop_back();
}

void CacheModel::flush() {
  for (Entry& entry : entries_) {
    if (entry.dirty) ++written_;
    entry.dirty = false;
  }
}

}  // namespace emulator
