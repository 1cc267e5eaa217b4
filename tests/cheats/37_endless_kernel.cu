// A kernel that never ends.
// stage: m1_align
// base: none
// expect: HANG

__global__ void forever() {
  for (volatile bool again = true; again;) {
  }
}
static cudaError_t cheat(const Call& call) {
  return moe::launch(forever, dim3(1), dim3(1), 0, call.stream);
}
