// Allocates in the call and gives it back: what is free afterwards does not show it.
// stage: m1_align
// base: solution
// expect: WRONG
// quick: WRONG
// code: ALLOC

static cudaError_t cheat(const Call& call) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, 4096) != cudaSuccess) return cudaErrorMemoryAllocation;
  const cudaError_t status = honest(call);
  cudaFree(memory);
  return status;
}
