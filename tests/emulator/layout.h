// What the parts of the layout program share. layout.cu says what it is.
#pragma once

#include <drills/launch.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace layout {

inline constexpr unsigned kAll = 0xffffffffu;
inline constexpr int kLanes = 32;

// Shared by the processes of all parts (layout.cu).
inline int g_wrong_here = 0;
inline int* g_wrong = &g_wrong_here;

inline void report(const char* name, int wrong) {
  std::printf("%s: %d wrong\n", name, wrong);
  *g_wrong += wrong;
}

inline void require(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

// Runs the kernel on `count` zeros and returns what it made of them.
template <class T, class... P, class... A>
std::vector<T> run(void (*kernel)(T*, P...), dim3 grid, dim3 block, std::size_t count, A... rest) {
  std::vector<T> host(count);
  T* device = nullptr;
  require(cudaMalloc(&device, count * sizeof(T)), "cudaMalloc");
  require(cudaMemset(device, 0, count * sizeof(T)), "cudaMemset");
  require(moe::launch(kernel, grid, block, 0, nullptr, device, rest...), "launch");
  require(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost), "kernel");
  require(cudaFree(device), "cudaFree");
  return host;
}

// Bits without a pattern.
__host__ __device__ inline unsigned hash(unsigned x) {
  x = (x ^ x >> 16) * 0x45d9f3bu;
  return x ^ x >> 15;
}

void check_matrices();  // layout_matrix.cu
void check_warp();      // layout_warp.cu
void check_values();    // layout_values.cu
void check_fp8();       // layout_fp8.cu
void check_captures();  // layout_capture.cu
// Of capability 9.0 only.
void check_bulk();      // layout_bulk.cu
void check_wgmma();     // layout_wgmma.cu
void check_clusters();  // layout_cluster.cu

}  // namespace layout
