// A barrier that half of the threads never reach.
// stage: m1_align
// base: none
// expect: HANG
// gpu: WRONG

__global__ void half() {
  __shared__ volatile int arrived;
  if (threadIdx.x < 32) {
    __syncthreads();
    arrived = 1;
  } else {
    while (arrived != 1) __syncwarp();
  }
}
static cudaError_t cheat(const Call& call) {
  return moe::launch(half, dim3(1), dim3(64), 0, call.stream);
}
