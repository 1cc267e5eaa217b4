// Who wrote each 16-byte line of shared memory last, so far as the library sees it: bulk copies,
// cp.async and stmatrix. From that follow two reports on wgmma and bulk stores, which read by the
// async proxy: they read what a copy has not brought yet, or what was written by the ordinary path
// and not fenced. Plain stores are seen by what they change, between one read of a line and the
// next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {

inline constexpr std::size_t kSharedWindowBytes = std::size_t{256} * 1024;

class SharedLines {
 public:
  static constexpr std::size_t kBytes = 16;

  enum class Problem : std::uint8_t { kNone, kUnderWay, kNotFenced };

  // A new block: nothing is known of any line.
  void reset(int num_threads);

  // Offsets are those in the shared window.
  void start_copy(std::uint32_t offset, std::size_t bytes) { mark(offset, bytes, Kind::kUnderWay); }
  void land_bulk_copy(std::uint32_t offset, const unsigned char* bytes, std::size_t count);
  void write(std::uint32_t offset, std::size_t bytes, int thread);

  // fence.proxy.async by a thread, for what it wrote or for what it is about to read.
  void fence(int thread);

  // One line is read by the async proxy for the threads first .. first + count - 1, of which one
  // fence is enough. The hash of what is there goes to `hash`.
  Problem read(std::uint32_t offset,
               const unsigned char* bytes,
               int first_thread,
               int num_threads,
               std::uint32_t* hash);

  static std::uint32_t hash_of(const unsigned char* line);

 private:
  enum class Kind : std::uint8_t { kUnknown, kUnderWay, kWritten, kBulk, kRead };

  struct Line {
    std::uint64_t time = 0;
    std::uint32_t hash = 0;
    std::int16_t writer = 0;
    Kind kind = Kind::kUnknown;
  };

  void mark(std::uint32_t offset, std::size_t bytes, Kind kind, int writer = 0);
  bool is_fenced(const Line& line, const unsigned char* bytes, std::uint64_t readers_fence) const;
  std::vector<Line>& lines();

  std::vector<Line> lines_;  // empty until the first use
  std::vector<std::uint64_t> thread_fences_;
  std::array<std::uint64_t, 8> warpgroup_fences_{};
  std::uint64_t last_fence_ = 0;
  std::uint64_t time_ = 1;   // counts events, over all blocks that this object serves
  std::uint64_t start_ = 1;  // of this block: what is older says nothing
};

}  // namespace emulator
