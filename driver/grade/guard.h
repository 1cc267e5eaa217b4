// Watches what a test program has started: a submission that takes too much memory or too many
// processes is ended before the machine suffers.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace moe::grade {

class Guard {
 public:
  Guard(std::uint64_t memory_bytes, int processes)
      : memory_bytes_(memory_bytes), processes_(processes) {}

  void watch(pid_t test_program) { root_ = test_program; }
  void look();  // a few times a second

  bool memory_exceeded() const { return memory_exceeded_; }
  bool processes_exceeded() const { return processes_exceeded_; }

 private:
  pid_t root_ = -1;
  std::uint64_t memory_bytes_;
  int processes_;
  bool memory_exceeded_ = false;
  bool processes_exceeded_ = false;
};

}  // namespace moe::grade
