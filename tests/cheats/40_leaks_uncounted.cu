// Allocates by the linker's name for the function that is not counted.
// stage: m1_align
// base: solution
// expect: RULE
// says: __real_cudaMalloc is used; it belongs to the test harness

extern "C" cudaError_t __real_cudaMalloc(void** pointer, size_t bytes);

static cudaError_t cheat(const Call& call) {
  void* lost = nullptr;
  if (__real_cudaMalloc(&lost, 4096) != cudaSuccess) return cudaErrorMemoryAllocation;
  return honest(call);
}
