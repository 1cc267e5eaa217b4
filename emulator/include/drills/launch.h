// How kernels start and find their dynamic shared memory: the emulator's twin of drills/launch.h.
#pragma once

#include <cuda_runtime.h>
#include <emulator/control.h>
#include <emulator/kernel_call.h>

#include <cstddef>

// A region that is still to be written: noted for the runner, then falls through.
#define DRILL_TODO(region) ::emulator::note_todo(region)

namespace moe {

// What else a launch may ask for.
struct LaunchOptions {
  int cluster_size = 1;       // blocks with consecutive blockIdx.x that run together
  bool programmatic = false;  // changes nothing here: a kernel starts when the one before has ended
};

// Starts kernel(args...) on the stream. Returns the launch's error; a fault inside the kernel is
// returned here too (on a GPU it shows at a later call).
template <class... P, class... A>
cudaError_t launch(const LaunchOptions& options,
                   void (*kernel)(P...),
                   dim3 grid,
                   dim3 block,
                   std::size_t smem_bytes,
                   cudaStream_t stream,
                   A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A),
                "launch(): the number of arguments differs from the kernel's parameters");
  if constexpr (sizeof...(P) == sizeof...(A)) {
    const ::emulator::BoundKernel<P...> call(kernel, static_cast<P>(args)...);
    return ::emulator::launch(call, grid, block, smem_bytes, stream, options.cluster_size);
  } else {
    return cudaErrorInvalidValue;
  }
}

template <class... P, class... A>
cudaError_t launch(void (*kernel)(P...),
                   dim3 grid,
                   dim3 block,
                   std::size_t smem_bytes,
                   cudaStream_t stream,
                   A&&... args) {
  return launch(LaunchOptions{}, kernel, grid, block, smem_bytes, stream,
                static_cast<A&&>(args)...);
}

// The block's dynamic shared memory, aligned to 1024 bytes.
template <class T = unsigned char>
T* dynamic_shared() {
  return reinterpret_cast<T*>(::emulator::dynamic_shared());
}

}  // namespace moe
