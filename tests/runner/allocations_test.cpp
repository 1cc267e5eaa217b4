// The CUDA side of "a call allocates nothing": each way to ask for memory is counted, whether it is
// granted or not, so this runs without a GPU too.
#include <cuda_runtime.h>

#include <cstdio>

#include "backend.h"

namespace {

int failures = 0;

void expect(const char* what, uint32_t requests, int64_t bytes) {
  moe::protocol::Reply reply = {};
  moe::runner::note_allocations(reply);
  moe::runner::forget_allocations();
  const bool right = reply.num_allocations == requests && reply.allocated_bytes == bytes;
  if (right) return;
  ++failures;
  std::printf("%s: %u requests, %lld bytes; expected %u, %lld\n", what, reply.num_allocations,
              static_cast<long long>(reply.allocated_bytes), requests,
              static_cast<long long>(bytes));
}

}  // namespace

int main() {
  void* memory = nullptr;
  float* typed = nullptr;
  size_t pitch = 0;
  cudaPitchedPtr pitched = {};
  const cudaExtent extent = {8, 4, 2};
  moe::runner::forget_allocations();

  (void)cudaMalloc(&memory, 100);
  expect("cudaMalloc", 1, 100);
  (void)cudaMalloc(&typed, 100);
  (void)cudaMallocAsync(&typed, 20, nullptr);
  expect("of a type", 2, 120);
  (void)cudaMallocAsync(&memory, 4096, static_cast<cudaStream_t>(nullptr));
  expect("cudaMallocAsync", 1, 4096);
  (void)cudaMallocFromPoolAsync(&memory, 50, nullptr, nullptr);
  expect("cudaMallocFromPoolAsync", 1, 50);
  (void)cudaMallocManaged(&memory, 60);
  expect("cudaMallocManaged", 1, 60);
  (void)cudaMallocHost(&memory, 70);
  (void)cudaHostAlloc(&memory, 70, 0);
  expect("memory of the host", 2, 140);
  (void)cudaMallocPitch(&memory, &pitch, 16, 4);
  expect("cudaMallocPitch", 1, 64);
  (void)cudaMalloc3D(&pitched, extent);
  expect("cudaMalloc3D", 1, 64);
  cudaError_t (*const by_pointer)(void**, size_t) = &cudaMalloc;
  (void)by_pointer(&memory, 30);
  expect("by a pointer", 1, 30);
  (void)cudaDeviceSynchronize();
  (void)cudaFree(nullptr);
  expect("no request", 0, 0);
  std::printf(failures == 0 ? "every request is counted\n" : "%d wrong\n", failures);
  return failures == 0 ? 0 : 1;
}
