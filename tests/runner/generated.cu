#include "generated.h"

#include <cuda_bf16.h>

#include <drills/launch.h>

namespace moe::runner {
namespace {

__global__ void generate_bf16(__nv_bfloat16* values, uint64_t count, uint64_t seed, float scale) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    values[i] = __float2bfloat16_rn(generated_value(seed, i, scale));
  }
}

__global__ void generate_float(float* values, uint64_t count, uint64_t seed, float scale) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    values[i] = generated_value(seed, i, scale);
  }
}

__global__ void generate_e4m3(uint8_t* codes, uint64_t count, uint64_t seed) {
  const uint64_t stride = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    codes[i] = generated_e4m3(seed, i);
  }
}

}  // namespace

cudaError_t generate(void* allocation, const protocol::Buffer& b) {
  const dim3 grid(1024);
  const dim3 block(256);
  if (b.fill == protocol::Fill::kGeneratedBf16) {
    return launch(generate_bf16, grid, block, 0, nullptr, static_cast<__nv_bfloat16*>(allocation),
                  b.allocation_bytes / sizeof(__nv_bfloat16), b.seed, b.scale);
  }
  if (b.fill == protocol::Fill::kGeneratedE4m3) {
    return launch(generate_e4m3, grid, block, 0, nullptr, static_cast<uint8_t*>(allocation),
                  b.allocation_bytes, b.seed);
  }
  return launch(generate_float, grid, block, 0, nullptr, static_cast<float*>(allocation),
                b.allocation_bytes / sizeof(float), b.seed, b.scale);
}

}  // namespace moe::runner
