// capability.h: given to stages whose instructions only one kind of GPU has.
#pragma once

#include <cuda_runtime.h>

namespace moe {

// nullptr, or the rule that the current device breaks; for a refuse_X, so that X returns
// cudaErrorInvalidValue instead of a launch that finds no code. Legal while a stream captures.
// wgmma exists for sm_90a only, and code for that runs on no other GPU, newer ones included.
inline const char* refuse_unless_capability_9_0() {
  int device = 0;
  int major = 0;
  int minor = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) {
    return "the compute capability of the device cannot be read";
  }
  return major == 9 && minor == 0 ? nullptr : "the device must have compute capability 9.0";
}

}  // namespace moe
