// generated.h: big inputs, value by value from a seed, the same on the device and on the host
// (which makes only the few that a sampled output needs).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "protocol.h"

namespace moe {

// About normal with standard deviation `scale`: the sum of four uniform 16-bit numbers. Integer
// arithmetic and one fp32 product, so that every compiler gives the same bits.
__host__ __device__ inline float generated_value(uint64_t seed, uint64_t index, float scale) {
  uint64_t h = seed + index * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  h ^= h >> 31;
  const int sum =
      static_cast<int>((h & 0xffff) + (h >> 16 & 0xffff) + (h >> 32 & 0xffff) + (h >> 48));
  return static_cast<float>(sum - 131070) * (scale * (1.0f / 37837.0f));
}

// e4m3 codes of +-0.25 to +-2.
__host__ __device__ inline uint8_t generated_e4m3(uint64_t seed, uint64_t index) {
  uint64_t h = (seed + index) * 0x9e3779b97f4a7c15u;
  h ^= h >> 29;
  h *= 0xbf58476d1ce4e5b9u;
  h ^= h >> 32;
  return static_cast<uint8_t>((h & 0x80) | (0x28 + (h >> 8) % 0x19));
}

namespace runner {
cudaError_t generate(void* allocation, const protocol::Buffer& buffer);
}  // namespace runner

}  // namespace moe
