// Leaks a little device memory in every call.
// stage: m1_align
// base: solution
// expect: WRONG
// quick: WRONG
// says: requests: 1, bytes: 4096
// code: ALLOC

static cudaError_t cheat(const Call& call) {
  void* lost = nullptr;
  if (cudaMallocAsync(&lost, 4096, call.stream) != cudaSuccess) return cudaErrorMemoryAllocation;
  return honest(call);
}
