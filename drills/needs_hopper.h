// needs_hopper.h: the rule of the stages that are written for one GPU generation.
#pragma once

#include <cuda_runtime.h>

namespace moe {

// nullptr on a device of capability 9.0, else the rule. Code for wgmma, TMA and mbarriers is
// compiled for sm_90a, which runs on no other device, not even on a newer one.
inline const char* refuse_without_hopper() {
  int device = 0;
  int major = 0;
  int minor = 0;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
      cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess) {
    return "the device must say its capability";
  }
  return major == 9 && minor == 0 ? nullptr : "the device must be of compute capability 9.0";
}

}  // namespace moe
