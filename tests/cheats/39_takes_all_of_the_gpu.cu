// Allocates the whole device and gives nothing back.
// stage: m1_align
// base: solution
// expect: WRONG
// gpu: CRASH
// quick: WRONG
// code: ALLOC

static cudaError_t cheat(const Call& call) {
  void* all = nullptr;
  while (cudaMalloc(&all, std::size_t{2} << 30) == cudaSuccess) {
  }
  return honest(call);
}
