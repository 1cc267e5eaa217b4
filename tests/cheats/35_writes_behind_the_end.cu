// A few bytes behind the end of an output.
// stage: m1_align
// base: solution
// expect: WRONG
// code: OOB

static cudaError_t cheat(const Call& call) {
  const std::size_t capacity =
      moe::align_capacity(call.num_tokens, call.top_k, call.num_experts, call.block_m);
  const cudaError_t status = honest(call);
  call.sorted_token_ids[capacity] = 7;
  return status;
}
