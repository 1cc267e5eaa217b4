// chunk.h: eight bf16 values in one 16-byte access, as fp32. For kernels that only move memory:
// with smaller accesses they need more instructions than the memory needs time.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace moe {

inline constexpr int kChunk = 8;

// A bf16 is the upper half of a float. `from` is 16-byte aligned.
__device__ __forceinline__ void load_chunk(float (&values)[kChunk], const __nv_bfloat16* from) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const uint32_t words[kChunk / 2] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) {
    values[2 * i] = __uint_as_float(words[i] << 16);
    values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

// Rounds each value once.
__device__ __forceinline__ void store_chunk(__nv_bfloat16* to, const float (&values)[kChunk]) {
  uint32_t words[kChunk / 2];
#pragma unroll
  for (int i = 0; i < kChunk / 2; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
    std::memcpy(&words[i], &pair, sizeof pair);
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace moe
