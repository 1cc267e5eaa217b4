// Bytes of all kinds in every output: whatever they are, the judge must judge them.
// stage: m1_align
// base: none
// expect: WRONG

static uint32_t next_random() {
  static uint32_t state = 17;
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}
static void scribble(int32_t* values, size_t count, int range) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t random = next_random();
    values[i] = range == 0 ? static_cast<int32_t>(random << 8 | random >> 16)
                           : static_cast<int32_t>(random % static_cast<uint32_t>(range)) - 1;
  }
}
static cudaError_t cheat(const Call& call) {
  const size_t capacity =
      moe::align_capacity(call.num_tokens, call.top_k, call.num_experts, call.block_m);
  const bool small = next_random() % 2 == 0;
  scribble(call.sorted_token_ids, capacity, small ? call.num_tokens * call.top_k + 3 : 0);
  scribble(call.expert_ids, capacity / static_cast<size_t>(call.block_m),
           small ? call.num_experts + 3 : 0);
  scribble(call.num_tokens_post_padded, 1, small ? 1000 : 0);
  return cudaSuccess;
}
