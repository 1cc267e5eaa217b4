// setmaxnreg: the registers that each warpgroup of a block holds, out of those of the launch.
#pragma once

#include <emulator/place.h>

#include <array>
#include <string>

#include "fiber.h"

namespace emulator {

class Block;

class RegisterBudget {
 public:
  explicit RegisterBudget(Block& block) : block_(block) {}
  // The most registers that a kernel with so many threads a block can be launched with.
  void reset(int num_threads);

  void set(int registers, bool more, Place place);
  // "registers: warpgroup 0 has 168, ...; 240 wanted of 504 a thread of each"
  std::string describe() const;

 private:
  struct Warpgroup {
    int registers = 0;
    int arrived = 0;
    int wanted = 0;
    bool more = false;
    FiberQueue waiting;
  };

  bool grant(Warpgroup& warpgroup);

  Block& block_;
  std::array<Warpgroup, 8> warpgroups_;
  int num_warpgroups_ = 0;
  int free_ = 0;  // registers a thread that no warpgroup holds
};

}  // namespace emulator
