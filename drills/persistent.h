// persistent.h: given to the stages whose blocks stay on their multiprocessor and work on many
// tiles, fed through a ring of stages (m7 and later).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace moe {

// The number of blocks that fill the device, one for each multiprocessor.
inline cudaError_t count_multiprocessors(int* count) {
  int device = 0;
  const cudaError_t status = cudaGetDevice(&device);
  if (status != cudaSuccess) return status;
  return cudaDeviceGetAttribute(count, cudaDevAttrMultiProcessorCount, device);
}

// The (m, n) of tile number pid, in m4's order: GROUP_M rows of tiles are walked together, column
// by column.
template <int GROUP_M>
__device__ int2 ordered_tile(int pid, int num_pid_m, int num_pid_n) {
  const int group = pid / (GROUP_M * num_pid_n);
  const int rows = min(GROUP_M, num_pid_m - group * GROUP_M);
  const int in_group = pid - group * GROUP_M * num_pid_n;
  return {group * GROUP_M + in_group % rows, in_group / rows};
}

// A place in a ring of STAGES stages. `parity` is that of the phase of the stage's mbarrier to wait
// for; it flips when the ring starts over.
template <int STAGES>
struct RingPlace {
  int stage = 0;
  uint32_t parity = 0;
  __device__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
};

}  // namespace moe
