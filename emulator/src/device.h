// The device: OS threads that take the blocks of a grid one after the other.
#pragma once

#include <emulator/kernel_call.h>

#include <cstddef>
#include <cstdint>

namespace emulator {

struct Grid {
  const KernelCall* call = nullptr;
  dim3 grid_dim;
  dim3 block_dim;
  std::size_t smem_bytes = 0;
  int cluster_size = 1;

  std::uint64_t num_clusters() const {
    return std::uint64_t{grid_dim.x} * grid_dim.y * grid_dim.z /
           static_cast<std::uint64_t>(cluster_size);
  }
};

// Runs all blocks and returns when the last one has ended. A fault is recorded and returned.
cudaError_t run_grid(const Grid& grid);

}  // namespace emulator
