// What the Hopper parts of the layout program share: arrays on the device, values whose products
// are exact in any order, and kernels that want capability 9.0.
#pragma once

#include <drills/wgmma.h>

#include <cstdint>
#include <vector>

#include "layout.h"

namespace layout {

// Small multiples of 1/8 without a pattern: sums of their products are exact in fp32.
__host__ __device__ inline float small_value(unsigned index) {
  return static_cast<float>(static_cast<int>(hash(index + 77) % 17) - 8) / 8.0f;
}

template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : count_(values.size()) {
    require(cudaMalloc(&data_, count_ * sizeof(T)), "cudaMalloc");
    require(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), "copy");
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { (void)cudaFree(data_); }

  T* get() const { return data_; }
  std::vector<T> host() const {
    std::vector<T> values(count_);
    require(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), "kernel");
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

// rows x columns of small values.
inline std::vector<__nv_bfloat16> small_matrix(std::size_t count, unsigned seed) {
  std::vector<__nv_bfloat16> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = __float2bfloat16(small_value(static_cast<unsigned>(i) * 3 + seed));
  }
  return values;
}

template <class T>
CUtensorMap map_of(const T* array, const moe::TensorShape& shape, int box_rows) {
  CUtensorMap map;
  require(moe::make_tensor_map(&map, array, shape, box_rows), "make_tensor_map");
  return map;
}

// Launches and waits.
template <class... P, class... A>
void start(const moe::LaunchOptions& options,
           void (*kernel)(P...),
           dim3 grid,
           dim3 block,
           std::size_t smem_bytes,
           A... arguments) {
  require(moe::launch(options, kernel, grid, block, smem_bytes, nullptr, arguments...), "launch");
  require(cudaDeviceSynchronize(), "kernel");
}

}  // namespace layout
