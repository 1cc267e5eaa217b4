// A kernel that writes to nowhere.
// stage: m1_align
// base: none
// expect: CRASH

__global__ void wild() { *reinterpret_cast<volatile int*>(threadIdx.x + 16) = 1; }
static cudaError_t cheat(const Call& call) {
  return moe::launch(wild, dim3(1), dim3(1), 0, call.stream);
}
