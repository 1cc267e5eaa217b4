// launch.h: how a kernel starts, where its dynamic shared memory is, and the mark of a blank.
//
// CUDA version. The emulator's twin, with the same signatures, is emulator/include/drills/launch.h;
// it stands first on the include path of an emulator build. Write `#include <drills/launch.h>`.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include <drills/todo.h>

namespace moe {

// The dynamic shared memory of the block, seen as one T. 1024-byte aligned.
template <class T = unsigned char>
__device__ __forceinline__ T* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char drill_dynamic_shared_memory[];
  return reinterpret_cast<T*>(drill_dynamic_shared_memory);
}

// What else a launch may ask for; both want capability 9.0.
struct LaunchOptions {
  int cluster_size = 1;       // blocks with consecutive blockIdx.x that run together
  bool programmatic = false;  // may start before the kernel in front ends: griddepcontrol_wait()
};

// Starts `kernel<<<grid, block, smem_bytes, stream>>>(args...)` and returns what the launch said.
// Asks for the opt-in above 48 KB of dynamic shared memory itself. Never waits for the kernel.
template <class... Parameters, class... Arguments>
cudaError_t launch(const LaunchOptions& options,
                   void (*kernel)(Parameters...),
                   dim3 grid,
                   dim3 block,
                   size_t smem_bytes,
                   cudaStream_t stream,
                   Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "launch(): the kernel takes another number of arguments");
  if (smem_bytes > 48 * 1024) {
    const cudaError_t status = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem_bytes));
    if (status != cudaSuccess) return status;
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = smem_bytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2];
  if (options.cluster_size > 1) {
    attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
    attributes[config.numAttrs].val.clusterDim = {static_cast<unsigned>(options.cluster_size), 1,
                                                  1};
    ++config.numAttrs;
  }
  if (options.programmatic) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs].val.programmaticStreamSerializationAllowed = 1;
    ++config.numAttrs;
  }
  config.attrs = attributes;
  return cudaLaunchKernelEx(&config, kernel,
                            static_cast<Parameters>(std::forward<Arguments>(arguments))...);
}

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...),
                   dim3 grid,
                   dim3 block,
                   size_t smem_bytes,
                   cudaStream_t stream,
                   Arguments&&... arguments) {
  return launch(LaunchOptions{}, kernel, grid, block, smem_bytes, stream,
                std::forward<Arguments>(arguments)...);
}

}  // namespace moe
