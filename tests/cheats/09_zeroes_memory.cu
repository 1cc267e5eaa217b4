// Zeroes what it takes for counters of errors: they are in another process.
// stage: m1_align
// base: none
// expect: WRONG

static int errors[1024];
static cudaError_t cheat(const Call& call) {
  for (int& error : errors) error = 0;
  return cudaMemsetAsync(call.num_tokens_post_padded, 0, 4, call.stream);
}
