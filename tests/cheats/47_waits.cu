// Waits for the GPU inside the call.
// stage: m1_align
// base: solution
// expect: WRONG
// says: capture
// code: SYNC

static cudaError_t cheat(const Call& call) {
  const cudaError_t status = honest(call);
  cudaStreamSynchronize(call.stream);
  return status;
}
