// bfloat16 conversions, atomics, barriers that vote, cp.async, max.NaN.
#include <drills/ptx.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "layout.h"

namespace layout {

namespace {

// ---- bfloat16

__global__ void widen_kernel(uint32_t* out) {
  const unsigned code = blockIdx.x * blockDim.x + threadIdx.x;
  out[code] =
      __float_as_uint(__bfloat162float(__ushort_as_bfloat16(static_cast<unsigned short>(code))));
}

// Around each code: the code itself, its neighbours, halfway to the next and its neighbours.
constexpr int kTails = 6;
__host__ __device__ uint32_t tail(int i) {
  constexpr uint32_t kBits[kTails] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  return kBits[i];
}

__global__ void narrow_kernel(uint32_t* out, bool as_pair) {
  const unsigned code = blockIdx.x * blockDim.x + threadIdx.x;
  for (int i = 0; i < kTails; ++i) {
    const float value = __uint_as_float(code << 16 | tail(i));
    unsigned result = __bfloat16_as_ushort(__float2bfloat16(value));
    if (as_pair) {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(-value, value);
      result = __bfloat16_as_ushort(pair.y);
    }
    out[code * kTails + static_cast<unsigned>(i)] = result;
  }
}

void check_bf16() {
  constexpr unsigned kCodes = 65536;
  const auto wide = run(widen_kernel, kCodes / 256, 256, kCodes);
  int wrong = 0;
  for (unsigned code = 0; code < kCodes; ++code) wrong += wide[code] != code << 16 ? 1 : 0;
  report("bf16 to float, all codes", wrong);
  for (const bool as_pair : {false, true}) {
    wrong = 0;
    const auto narrow = run(narrow_kernel, kCodes / 256, 256, kCodes * kTails, as_pair);
    for (unsigned code = 0; code < kCodes; ++code) {
      for (int i = 0; i < kTails; ++i) {
        const uint32_t bits = code << 16 | tail(i);
        const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
        const unsigned up = (bits & 0xffffu) + (code & 1u) > 0x8000u ? 1 : 0;
        const unsigned want = is_nan ? 0x7fffu : code + up;
        wrong += narrow[code * kTails + static_cast<unsigned>(i)] != want ? 1 : 0;
      }
    }
    report(as_pair ? "float to bf16x2, all halfway values" : "float to bf16, all halfway values",
           wrong);
  }
}

// ---- Atomics, barriers that vote, cp.async

constexpr int kCounters = 12;

__global__ void atomic_kernel(unsigned* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&out[0], i);
  atomicSub(&out[1], 1u);
  atomicMax(&out[2], hash(i));
  atomicMin(&out[3], hash(i));
  atomicOr(&out[4], 1u << i % 32);
  atomicXor(&out[5], hash(i));
  atomicInc(&out[6], 99u);
  atomicDec(&out[7], 99u);
  atomicMax(reinterpret_cast<int*>(&out[8]), -static_cast<int>(i) - 1);
  while (atomicCAS(&out[9], i, i + 1) != i) __nanosleep(20);
  const int before = moe::add_relaxed(reinterpret_cast<int32_t*>(&out[10]), 3);
  atomicAdd(&out[11], static_cast<unsigned>(before));  // 0, 3, 6, .. in some order
}

void check_atomics() {
  constexpr unsigned kThreads = 256;
  constexpr const char* kNames[kCounters] = {
      "atomicAdd",     "atomicSub", "atomicMax",   "atomicMin",
      "atomicOr",      "atomicXor", "atomicInc",   "atomicDec",
      "atomicMax int", "atomicCAS", "add_relaxed", "add_relaxed, what was there"};
  unsigned want[kCounters] = {
      kThreads * (kThreads - 1) / 2, 0u - kThreads, 0, 0, kAll, 0, kThreads % 100, 0, 0, kThreads};
  want[10] = 3 * kThreads;
  want[11] = 3 * want[0];
  for (unsigned i = 0; i < kThreads; ++i) {
    if (hash(i) > want[2]) want[2] = hash(i);
    want[5] ^= hash(i);
    want[7] = want[7] == 0 || want[7] > 99 ? 99 : want[7] - 1;
  }
  const auto out = run(atomic_kernel, 8, kLanes, kCounters);
  for (int i = 0; i < kCounters; ++i) {
    report(kNames[i], out[static_cast<std::size_t>(i)] != want[i] ? 1 : 0);
  }
}

__global__ void copy_kernel(uint32_t* out, const uint4* from) {
  __shared__ __align__(16) uint4 shared[kLanes];
  const int lane = static_cast<int>(threadIdx.x);
  shared[lane] = make_uint4(7, 7, 7, 7);
  moe::cp_async16(&shared[lane], &from[lane], lane % 3 != 0);
  moe::cp_async_commit();
  moe::cp_async_wait<0>();
  __syncthreads();
  const uint4 mine = shared[lane ^ 1];
  const uint32_t words[4] = {mine.x, mine.y, mine.z, mine.w};
  for (int i = 0; i < 4; ++i) out[lane * 4 + i] = words[i];
}

void check_copy() {
  std::vector<uint32_t> host(kLanes * 4);
  for (unsigned i = 0; i < kLanes * 4; ++i) host[i] = hash(i);
  uint4* from = nullptr;
  require(cudaMalloc(&from, kLanes * sizeof(uint4)), "cudaMalloc");
  require(cudaMemcpy(from, host.data(), kLanes * sizeof(uint4), cudaMemcpyHostToDevice), "copy");
  const auto out = run(copy_kernel, 1, kLanes, kLanes * 4, static_cast<const uint4*>(from));
  int wrong = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned i = 0; i < 4; ++i) {
      const uint32_t want = (lane ^ 1u) % 3 == 0 ? 0 : host[(lane ^ 1u) * 4 + i];
      wrong += out[lane * 4 + i] != want ? 1 : 0;
    }
  }
  require(cudaFree(from), "cudaFree");
  report("cp.async with zero fill", wrong);
}

__global__ void barrier_kernel(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i * 3] = __syncthreads_count(i % 3 == 0 ? 1 : 0);
  out[i * 3 + 1] = __syncthreads_and(i != 50 ? 1 : 0) + 2 * __syncthreads_and(i < 96 ? 1 : 0);
  out[i * 3 + 2] = __syncthreads_or(i == 50 ? 1 : 0) + 2 * __syncthreads_or(i > 95 ? 1 : 0);
}

void check_barriers() {
  const auto out = run(barrier_kernel, 1, 96, 96 * 3);
  int wrong = 0;
  for (std::size_t i = 0; i < 96; ++i) {
    wrong += out[i * 3] != 32 || out[i * 3 + 1] != 2 || out[i * 3 + 2] != 1 ? 1 : 0;
  }
  report("syncthreads_count, _and, _or", wrong);
}

// ---- max.NaN

__global__ void max_kernel(uint32_t* out, const float* values, int count) {
  const int i = static_cast<int>(threadIdx.x);
  for (int j = 0; j < count; ++j) {
    out[i * count + j] = __float_as_uint(moe::max_nan(values[i], values[j]));
  }
}

void check_max() {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> host = {-20.0f, 20.0f, -infinity, infinity, 1e-41f, 3.5f, nan, -nan};
  const auto count = static_cast<unsigned>(host.size());
  float* values = nullptr;
  require(cudaMalloc(&values, count * sizeof(float)), "cudaMalloc");
  require(cudaMemcpy(values, host.data(), count * sizeof(float), cudaMemcpyHostToDevice), "copy");
  const auto out = run(max_kernel, 1, count, count * count, static_cast<const float*>(values),
                       static_cast<int>(count));
  require(cudaFree(values), "cudaFree");
  int wrong = 0;
  for (unsigned i = 0; i < count; ++i) {
    for (unsigned j = 0; j < count; ++j) {
      float got = 0.0f;
      std::memcpy(&got, &out[i * count + j], sizeof(got));
      const bool is_nan = std::isnan(host[i]) || std::isnan(host[j]);
      const bool right = is_nan ? std::isnan(got) : got == std::max(host[i], host[j]);
      wrong += right ? 0 : 1;
    }
  }
  report("max.NaN", wrong);
}

}  // namespace

void check_values() {
  check_bf16();
  check_atomics();
  check_copy();
  check_barriers();
  check_max();
}

}  // namespace layout
