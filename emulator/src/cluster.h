// The blocks that run together on one OS thread: a cluster, or one block alone.
#pragma once

#include <emulator/kernel_call.h>
#include <emulator/language.h>

#include <cstddef>
#include <string>
#include <vector>

#include "block.h"

namespace emulator {

inline constexpr int kMaxClusterBlocks = 8;

class Cluster {
 public:
  void set_blocks(const std::vector<Block*>& blocks) { blocks_ = blocks; }
  int size() const { return static_cast<int>(blocks_.size()); }
  Block& block(int rank) { return *blocks_[static_cast<std::size_t>(rank)]; }

  // Runs the blocks from `first` on to their ends; false after a fault of one of them.
  bool run(const KernelCall& call, uint3 first, dim3 grid_dim);
  // The block that failed.
  const Block* failed() const;

  // ---- From inside a kernel.
  // All threads of all blocks that have not returned meet.
  void sync(Block& own, Place place);
  // Block `rank`, whose shared memory must still be there.
  Block& peer(int rank, const char* function, Place place);
  // What lies at the same place in another block's shared memory.
  template <class T>
  static T* same_place(const Block& from, Block& to, T* address) {
    return reinterpret_cast<T*>(to.shared_at(from.shared_offset(address)));
  }
  void release_if_complete();

 private:
  bool run_some();
  void report_deadlock();

  std::vector<Block*> blocks_;
  int arrived_ = 0;  // threads at cluster_sync()
};

}  // namespace emulator
