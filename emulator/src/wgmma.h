// wgmma: matrix products of a warpgroup that run behind its back.
//
// Each thread hands in its part of an operation and goes on: its accumulators become NaN at once,
// and get their values at the wait for the operation's group, where the 128 threads meet and the
// tiles are read. So a missing wait gives NaN, and a tile that was overwritten before the wait is
// known by its hash.
#pragma once

#include <emulator/hopper.h>

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "fiber.h"

namespace emulator {

class Block;

inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kWgmmaRows = 64;

// The accumulators of one array of registers.
struct Accumulators {
  int n = 0;
  int operations = 0;         // under way on them
  bool were_written = false;  // `rows` holds what the last wait gave
  std::uint64_t written = 0;  // when that was
  std::vector<float> rows;    // 64 x n
  std::array<float*, kWarpgroupThreads> d{};
  std::array<bool, kWarpgroupThreads> taken{};  // the thread's registers are in `rows`
};

struct WgmmaOperation {
  WgmmaCall call;
  Place place;
  std::uint32_t group = 0;
  int arrived = 0;
  std::size_t accumulators = 0;
  std::uint32_t hash = 0;  // of the tiles when the first thread came
  std::vector<std::uint32_t> a_registers;
};

// The four warps of one warpgroup.
class Warpgroup {
 public:
  void reset();
  void issue(Block& block, int thread, const WgmmaCall& call, Place place);
  void fence(int thread) { fences_[index(thread)] = ++time_; }
  void commit(int thread) { ++commits_[index(thread)]; }
  void wait(Block& block, int thread, int pending_groups, Place place);
  // Operations of the thread that it did not wait for.
  std::size_t pending(int thread) const { return issued_[index(thread)] - done_; }
  Place oldest_place() const { return operations_.front().place; }

 private:
  static std::size_t index(int thread) {
    return static_cast<std::size_t>(thread % kWarpgroupThreads);
  }
  WgmmaOperation& operation_of(Block& block, int thread, const WgmmaCall& call, Place place);
  std::size_t find_accumulators(int thread, const WgmmaCall& call);
  void take_accumulators(Block& block, Accumulators& all, int thread, float* d, Place place);
  void give_accumulators(Block& block, Accumulators& all, Place place);
  void execute(Block& block, WgmmaOperation& operation);

  std::deque<WgmmaOperation> operations_;
  std::vector<Accumulators> accumulators_;
  std::size_t done_ = 0;  // operations that were executed, the number of operations_.front()
  std::uint64_t time_ = 0;
  std::array<std::size_t, kWarpgroupThreads> issued_{};
  std::array<std::uint32_t, kWarpgroupThreads> commits_{};
  std::array<std::uint64_t, kWarpgroupThreads> fences_{};
  int waiting_threads_ = 0;
  int waits_for_ = 0;
  Place wait_place_;
  FiberQueue waiting_;
};

// ---- wgmma_tile.cpp
// Two tiles as floats; too large for the stack of a thread.
struct WgmmaTiles {
  static constexpr int kDepth = 32;  // of e4m3; 16 of bf16
  alignas(64) float a[kWgmmaRows][kDepth];
  alignas(64) float b[kDepth][256];
};

// One of the 16-byte pieces of a tile that a descriptor names.
struct TilePiece {
  int row = 0;               // MN-major: the first of 8
  int k = 0;                 // K-major: 0 or 1, the half of the 32 bytes of k
  std::uint32_t offset = 0;  // in the shared window
};
// All pieces of a tile of `rows` rows by 32 bytes of k. Refuses a descriptor that says no 128-byte
// swizzle.
void list_pieces(std::uint64_t descriptor,
                 int rows,
                 bool is_mn_major,
                 std::vector<TilePiece>* pieces,
                 Place place);
// Hashes a tile, and (check_fences) looks whether the async proxy may read it yet.
std::uint32_t hash_tile(Block& block,
                        const std::vector<TilePiece>& pieces,
                        int first_thread,
                        bool check_fences,
                        Place place);
// rows (64 x n) += A * B, in the order of k.
void multiply(Block& block, const WgmmaOperation& operation, float* rows);

}  // namespace emulator
