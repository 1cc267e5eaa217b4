// Replaces CUDA's event times.
// stage: m1_align
// base: none
// expect: RULE
// says: cudaEventElapsedTime belongs to the test harness

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  *ms = 0.001f;
  return cudaSuccess;
}
static cudaError_t cheat(const Call&) { return cudaSuccess; }
