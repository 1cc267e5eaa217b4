// What a warp's memory access costs on the hardware, counted and not timed: 32-byte sectors of
// global memory, passes over the banks of shared memory, and what a cache of a given size would
// fetch. Nothing here knows of the emulator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

namespace emulator {

inline constexpr std::uintptr_t kSectorBytes = 32;

// One load or store of a warp: each lane that takes part has an address; all move as many bytes.
struct WarpRequest {
  unsigned lanes = 0;
  std::uint32_t bytes = 0;  // of a lane, 1 to 16
  std::array<std::uintptr_t, 32> address{};

  int num_lanes() const { return __builtin_popcount(lanes); }
};

// The sectors that a request touches, each once, in the order of the lanes.
void list_sectors(const WarpRequest& request, std::vector<std::uintptr_t>* sectors);

// The fewest sectors that as many different bytes could lie in.
int least_sectors(const WarpRequest& request);

// Shared memory answers one 4-byte word of each of 32 banks at a time; lanes that want the same
// word share it. Requests of 8 bytes a lane go by half warps, of 16 by quarters.
struct BankPasses {
  int passes = 0;
  int least = 0;  // one for each half or quarter that takes part
  int conflicts() const { return passes - least; }
};
BankPasses count_bank_passes(const WarpRequest& request);

// What cp.async brings is written as it comes, not quarter by quarter: m2's rows of 80 bytes, of
// which two in a quarter meet in four banks, read 268 conflicts on an H200 in 640 copies, not 2560.
BankPasses count_copy_passes(const WarpRequest& request);

// A cache of whole sectors in which the one that was used longest ago makes room. Written sectors
// go to memory when they leave.
class CacheModel {
 public:
  explicit CacheModel(std::size_t bytes) : capacity_(bytes / kSectorBytes) {}

  void read(std::uintptr_t sector) { use(sector, false); }
  void write(std::uintptr_t sector) { use(sector, true); }
  // What is still to be written goes to memory.
  void flush();

  std::uint64_t bytes_read() const { return read_ * kSectorBytes; }
  std::uint64_t bytes_written() const { return written_ * kSectorBytes; }

 private:
  struct Entry {
    std::uintptr_t sector = 0;
    bool dirty = false;
  };

  void use(std::uintptr_t sector, bool writes);

  std::size_t capacity_;
  std::list<Entry> entries_;  // the one used last stands first
  std::unordered_map<std::uintptr_t, std::list<Entry>::iterator> places_;
  std::uint64_t read_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace emulator
