// Barriers 1 to 15 of a block, for some of its warps.
#pragma once

#include <emulator/place.h>

#include <array>
#include <string>

#include "fiber.h"

namespace emulator {

class Block;

class NamedBarriers {
 public:
  explicit NamedBarriers(Block& block) : block_(block) {}
  void reset() { all_ = {}; }

  void arrive(int id, int threads, bool waits, Place place);
  // "barrier 3: 64 of 128 threads missing"
  std::string describe(int id) const;

 private:
  static constexpr int kCount = 16;

  struct Barrier {
    int threads = 0;  // that the first to arrive asked for
    int arrived = 0;
    Place place;
    FiberQueue waiting;
  };

  Block& block_;
  std::array<Barrier, kCount> all_;
};

}  // namespace emulator
