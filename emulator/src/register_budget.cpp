#include "register_budget.h"

#include <emulator/hopper.h>

#include <algorithm>

#include "block.h"

namespace emulator {

namespace {

constexpr int kWarpgroup = 128;
constexpr int kRegisters = 65536;

}  // namespace

void RegisterBudget::reset(int num_threads) {
  num_warpgroups_ = num_threads % kWarpgroup == 0 ? num_threads / kWarpgroup : 0;
  free_ = 0;
  const int each = std::min(kRegisters / std::max(num_threads, 1) / 8 * 8, 256);
  warpgroups_ = {};
  for (Warpgroup& warpgroup : warpgroups_) warpgroup.registers = each;
}

// The warps of a warpgroup meet; the last one changes the budget for all.
void RegisterBudget::set(int registers, bool more, Place place) {
  const char* function = more ? "setmaxnreg_inc" : "setmaxnreg_dec";
  const int thread = block_.current().linear;
  if (num_warpgroups_ == 0) {
    block_.fail("divergence",
                std::string(function) + " needs a block of whole warpgroups of 128 threads", place);
  }
  Warpgroup& warpgroup = warpgroups_[static_cast<std::size_t>(thread / kWarpgroup)];
  if (warpgroup.arrived != 0 && (warpgroup.wanted != registers || warpgroup.more != more)) {
    block_.fail("divergence",
                "warps of one warpgroup change their registers to different numbers: " +
                    std::to_string(warpgroup.wanted) + " and " + std::to_string(registers),
                place);
  }
  if (more ? registers < warpgroup.registers : registers > warpgroup.registers) {
    block_.fail("out of bounds",
                std::string(function) + "<" + std::to_string(registers) + ">: the warpgroup has " +
                    std::to_string(warpgroup.registers) + " registers a thread",
                place);
  }
  warpgroup.wanted = registers;
  warpgroup.more = more;
  if (++warpgroup.arrived == kWarpgroup && grant(warpgroup)) return;
  block_.wait_in(warpgroup.waiting, Operation::kSetmaxnreg, place);
}

// What is given back may be what others wait for.
bool RegisterBudget::grant(Warpgroup& warpgroup) {
  const int change = warpgroup.wanted - warpgroup.registers;
  if (change > free_) return false;
  free_ -= change;
  warpgroup.registers = warpgroup.wanted;
  warpgroup.arrived = 0;
  block_.wake(warpgroup.waiting);
  if (change < 0) {
    for (Warpgroup& other : warpgroups_) {
      if (other.arrived == kWarpgroup) grant(other);
    }
  }
  return true;
}

std::string RegisterBudget::describe() const {
  std::string text = "registers a thread:";
  for (int i = 0; i < num_warpgroups_; ++i) {
    const Warpgroup& warpgroup = warpgroups_[static_cast<std::size_t>(i)];
    text += " " + std::to_string(warpgroup.registers);
    if (warpgroup.arrived == kWarpgroup)
      text += " (wants " + std::to_string(warpgroup.wanted) + ")";
  }
  return text + ", free " + std::to_string(free_);
}

void set_registers(int registers, bool more, Place place) {
  t_block->register_budget.set(registers, more, place);
}

}  // namespace emulator
