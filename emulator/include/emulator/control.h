// What a test runner sets and asks: options, the text of the last fault, the regions left to do.
#pragma once

#include <cstddef>
#include <cstdint>

namespace emulator {

// In which order threads first run, and go on after a barrier. A right kernel gives the same
// result in all of them.
enum class Order { kForward, kReverse, kShuffle };

struct Options {
  Order order = Order::kForward;
  Order block_order = Order::kForward;  // forward: a block may wait for blocks of smaller index
  std::uint64_t seed = 1;               // of kShuffle
  int workers = 0;                      // OS threads; 0: all cores, 16 at most
  std::size_t stack_bytes = std::size_t{64} * 1024;  // per CUDA thread; four times that under ASan
  bool poison = true;        // fill shared memory with 0xFF (NaN) before each block
  bool proxy_fences = true;  // report what wgmma and bulk stores read without fence_proxy_async()
  double hang_seconds = 2;   // CPU time without progress that counts as a hang; 0: never
  int capability_major = 9;  // what the device says it is; nothing else depends on it
  int capability_minor = 0;
  int report_fd = 2;  // where a report goes that is written while the process dies
};

// The first use reads EMULATOR_ORDER, EMULATOR_BLOCK_ORDER (forward, reverse, shuffle:SEED),
// EMULATOR_WORKERS, EMULATOR_STACK, EMULATOR_POISON, EMULATOR_PROXY_FENCES, EMULATOR_HANG and
// EMULATOR_CAPABILITY. Change them between launches.
Options& options();

// The report on the last device fault, "" if there was none. Its first line is "kind: sentence";
// kind is divergence, deadlock, assert, exception, missing wait, missing commit, missing fence,
// mbarrier, bulk copy, wgmma, cluster, hang, misaligned, out of bounds or launch. As on a GPU every
// later call returns the same error, except after kind launch.
const char* fault();
void clear_fault();

// In a build that traces kernels (the tree cpu-traced): from begin_watch() to end_watch() the
// observer that EMULATOR_WATCH names looks on. Elsewhere, and without that variable, nothing.
bool can_watch();
void begin_watch();
void end_watch();

// What was asked of cudaMalloc and its like since forget_allocations(), granted or not.
struct Allocations {
  std::uint32_t calls = 0;
  std::size_t bytes = 0;
};
Allocations allocations();
void forget_allocations();

// Distinct regions that DRILL_TODO named, in the order in which they were first reached.
int todo_count();
const char* todo(int index);
void clear_todo();
void note_todo(const char* region);

}  // namespace emulator
