// Leaves the last row as it was.
// stage: m2_grouped_gemm
// base: solution
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  return call.num_tokens > 1 ? honest(call.with_tokens(call.num_tokens - 1)) : honest(call);
}
