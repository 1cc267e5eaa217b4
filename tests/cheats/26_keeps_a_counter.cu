// A counter that is never reset: right once, wrong afterwards.
// stage: m1_align
// base: solution
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  static int calls = 0;
  const cudaError_t status = honest(call);
  if (calls++ % 3 == 0) return status;
  return cudaMemsetAsync(call.num_tokens_post_padded, 1, 1, call.stream);
}
