/* device_memory.h: arrays on the device, for a library of either backend. On the emulator host
 * memory stands for device memory. */
#ifndef DEVICE_MEMORY_H
#define DEVICE_MEMORY_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ON_CUDA
#include <cuda_runtime_api.h>

static void must(cudaError_t status) {
  if (status == cudaSuccess) return;
  printf("CUDA: %s\n", cudaGetErrorString(status));
  exit(70);
}
#endif

static void* device_array(const void* values, size_t bytes) {
  void* memory = NULL;
#ifdef ON_CUDA
  must(cudaMalloc(&memory, bytes));
  if (values != NULL) must(cudaMemcpy(memory, values, bytes, cudaMemcpyHostToDevice));
#else
  if (posix_memalign(&memory, 256, bytes) != 0) exit(70);
  if (values != NULL) memcpy(memory, values, bytes);
#endif
  return memory;
}

/* Waits for the default stream. */
static void copy_back(void* values, const void* device, size_t bytes) {
#ifdef ON_CUDA
  must(cudaMemcpy(values, device, bytes, cudaMemcpyDeviceToHost));
#else
  memcpy(values, device, bytes);
#endif
}

#endif /* DEVICE_MEMORY_H */
