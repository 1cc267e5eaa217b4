// choose_experts.h: given to layers that route by themselves (m8 and later): m1's top-k of one
// token by one warp, for any place in a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cfloat>
#include <climits>
#include <cstdint>

namespace moe {

inline constexpr int kWarpSize = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// A logit as an integer in the same order; the two least are no logit's.
inline constexpr uint32_t kTaken = 0;
inline constexpr uint32_t kNanKey = 1;

__device__ inline uint32_t key_of(float logit) {
  if (logit != logit) return kNanKey;
  const float number = fminf(fmaxf(logit, -FLT_MAX), FLT_MAX) + 0.0f;
  const uint32_t bits = __float_as_uint(number);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float logit_of(uint32_t key) {
  return __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// One warp chooses the experts of one token, as in m1: lane `slot` gets the expert and the weight
// of that slot.
template <int PER_LANE>
__device__ void choose_experts(
    const float* logits, int num_experts, int top_k, bool renormalize, int& id, float& weight) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  uint32_t keys[PER_LANE];
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    const int expert = lane + i * kWarpSize;
    keys[i] = expert < num_experts ? key_of(logits[expert]) : kTaken;
  }
  uint32_t largest = kTaken;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) largest = max(largest, keys[i]);
  largest = __reduce_max_sync(kAllLanes, largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    if (keys[i] > kNanKey) sum += expf(logit_of(keys[i]) - logit_of(largest));
  }
  sum = warp_sum(sum);

  id = 0;
  uint32_t my_key = kTaken;
  for (int slot = 0; slot < top_k; ++slot) {
    uint32_t best = kTaken;
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) best = max(best, keys[i]);
    best = __reduce_max_sync(kAllLanes, best);
    unsigned candidate = UINT_MAX;
#pragma unroll
    for (int i = PER_LANE - 1; i >= 0; --i) {
      if (keys[i] == best) candidate = static_cast<unsigned>(lane + i * kWarpSize);
    }
    const unsigned expert = __reduce_min_sync(kAllLanes, candidate);
#pragma unroll
    for (int i = 0; i < PER_LANE; ++i) {
      if (static_cast<unsigned>(lane + i * kWarpSize) == expert) keys[i] = kTaken;
    }
    if (lane == slot) {
      id = static_cast<int>(expert);
      my_key = best;
    }
  }
  weight = my_key > kNanKey ? expf(logit_of(my_key) - logit_of(largest)) / sum : 0.0f;
  if (renormalize) {
    const float chosen = warp_sum(weight);
    if (chosen > 0.0f) weight /= chosen;
  }
}

}  // namespace moe
