// Changes what it was only to read.
// stage: m1_align
// base: solution
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  const cudaError_t status = honest(call);
  if (call.num_tokens > 0) const_cast<int32_t*>(call.topk_ids)[0] ^= 1;
  return status;
}
