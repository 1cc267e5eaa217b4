// Does the work on the host. Only a captured graph shows it: the full set.
// stage: m1_align
// base: solution
// expect: WRONG
// gpu: CRASH
// code: REPLAY

#include <vector>
static cudaError_t cheat(const Call& call) {
  const std::size_t capacity =
      moe::align_capacity(call.num_tokens, call.top_k, call.num_experts, call.block_m);
  const int ids = call.num_tokens * call.top_k;
  std::vector<std::vector<int32_t>> of_expert(static_cast<std::size_t>(call.num_experts));
  for (int i = 0; i < ids; ++i) {
    const int expert = call.topk_ids[i];
    if (expert >= 0 && expert < call.num_experts) of_expert[static_cast<std::size_t>(expert)].push_back(i);
  }
  for (std::size_t i = 0; i < capacity; ++i) call.sorted_token_ids[i] = ids;
  for (std::size_t i = 0; i < capacity / static_cast<std::size_t>(call.block_m); ++i) call.expert_ids[i] = -1;
  std::size_t row = 0;
  for (int e = 0; e < call.num_experts; ++e) {
    for (const int32_t id : of_expert[static_cast<std::size_t>(e)]) {
      call.expert_ids[row / static_cast<std::size_t>(call.block_m)] = e;
      call.sorted_token_ids[row++] = id;
    }
    while (row % static_cast<std::size_t>(call.block_m) != 0) ++row;
  }
  *call.num_tokens_post_padded = static_cast<int32_t>(row);
  return cudaSuccess;
}
