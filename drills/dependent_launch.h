// dependent_launch.h: given to layers that run on 8.0 and newer and let their kernels overlap where
// the GPU can: a kernel that is launched so may start before the one in front has ended.
//
// CUDA version. The emulator's twin is emulator/include/drills/dependent_launch.h.
#pragma once

#include <cuda_runtime.h>

#include <drills/launch.h>

namespace moe {

// Waits until the kernel in front has ended and what it wrote is seen.
__device__ __forceinline__ void wait_for_kernel_in_front() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Says that blocks of the next kernel may start where this one leaves room. Said by all blocks, or
// by their end.
__device__ __forceinline__ void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// How to launch `kernel` behind another one. Only code made for 9.0 and newer has the wait, and not
// all code that runs on such a GPU was: nvcc may have been told 8.0.
template <class... Parameters>
LaunchOptions behind_kernel_in_front(void (*kernel)(Parameters...)) {
  LaunchOptions options;
  cudaFuncAttributes attributes = {};
  options.programmatic =
      cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.ptxVersion >= 90;
  return options;
}

}  // namespace moe
