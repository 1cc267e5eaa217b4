#include "shared_lines.h"

#include <algorithm>
#include <cstring>

namespace emulator {

namespace {

constexpr int kWarpgroup = 128;

}  // namespace

void SharedLines::reset(int num_threads) {
  start_ = ++time_;
  last_fence_ = 0;
  warpgroup_fences_ = {};
  thread_fences_.assign(static_cast<std::size_t>(num_threads), 0);
}

std::vector<SharedLines::Line>& SharedLines::lines() {
  if (lines_.empty()) lines_.resize(kSharedWindowBytes / kBytes);
  return lines_;
}

std::uint32_t SharedLines::hash_of(const unsigned char* line) {
  std::uint64_t words[2];
  std::memcpy(words, line, sizeof words);
  std::uint64_t mixed = (words[0] ^ words[1] * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  mixed ^= (words[1] >> 29) * 0xc2b2ae3d27d4eb4fu;
  return static_cast<std::uint32_t>(mixed >> 32 ^ mixed);
}

void SharedLines::mark(std::uint32_t offset, std::size_t bytes, Kind kind, int writer) {
  std::vector<Line>& all = lines();
  const std::size_t first = offset / kBytes;
  const std::size_t last = std::min((offset + bytes - 1) / kBytes, all.size() - 1);
  ++time_;
  for (std::size_t i = first; i <= last; ++i) {
    all[i] = {time_, 0, static_cast<std::int16_t>(writer), kind};
  }
}

void SharedLines::land_bulk_copy(std::uint32_t offset,
                                 const unsigned char* bytes,
                                 std::size_t count) {
  mark(offset, count, Kind::kBulk);
  if (offset % kBytes != 0) return;
  for (std::size_t i = 0; i + kBytes <= count; i += kBytes) {
    lines_[(offset + i) / kBytes].hash = hash_of(bytes + i);
  }
}

void SharedLines::write(std::uint32_t offset, std::size_t bytes, int thread) {
  mark(offset, bytes, Kind::kWritten, thread);
}

void SharedLines::fence(int thread) {
  last_fence_ = ++time_;
  thread_fences_[static_cast<std::size_t>(thread)] = last_fence_;
  warpgroup_fences_[static_cast<std::size_t>(thread / kWarpgroup)] = last_fence_;
}

bool SharedLines::is_fenced(const Line& line,
                            const unsigned char* bytes,
                            std::uint64_t readers_fence) const {
  if (line.time <= start_) {  // plain stores, or nobody: poison is no data
    return last_fence_ > start_ ||
           std::all_of(bytes, bytes + kBytes, [](unsigned char byte) { return byte == 0xff; });
  }
  if (line.kind == Kind::kWritten) {
    const std::uint64_t writers = thread_fences_[static_cast<std::size_t>(line.writer)];
    return std::max(writers, readers_fence) > line.time;
  }
  // Landed, or read before: whatever changed since was written by a plain store.
  return last_fence_ > line.time || line.hash == hash_of(bytes);
}

SharedLines::Problem SharedLines::read(std::uint32_t offset,
                                       const unsigned char* bytes,
                                       int first_thread,
                                       int num_threads,
                                       std::uint32_t* hash) {
  Line& line = lines()[offset / kBytes];
  const bool known = line.time > start_;
  if (known && line.kind == Kind::kUnderWay) return Problem::kUnderWay;
  const std::uint64_t readers_fence =
      num_threads == 1 ? thread_fences_[static_cast<std::size_t>(first_thread)]
                       : warpgroup_fences_[static_cast<std::size_t>(first_thread / kWarpgroup)];
  if (!is_fenced(line, bytes, readers_fence)) return Problem::kNotFenced;
  *hash = hash_of(bytes);
  line = {++time_, *hash, 0, Kind::kRead};
  return Problem::kNone;
}

}  // namespace emulator
