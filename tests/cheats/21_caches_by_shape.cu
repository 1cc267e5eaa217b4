// Keeps the output of the first call of a shape and copies it afterwards. The full set calls
// twice with other data.
// stage: m1_align
// base: solution
// expect: WRONG
// gpu: CRASH

#include <map>
#include <tuple>
#include <vector>
static cudaError_t cheat(const Call& call) {
  using Shape = std::tuple<int, int, int, int>;
  static std::map<Shape, std::vector<int32_t>> known;
  const Shape shape{call.num_tokens, call.top_k, call.num_experts, call.block_m};
  const std::size_t capacity =
      moe::align_capacity(call.num_tokens, call.top_k, call.num_experts, call.block_m);
  const auto found = known.find(shape);
  if (found != known.end()) {
    return cudaMemcpyAsync(call.sorted_token_ids, found->second.data(), capacity * 4,
                           cudaMemcpyHostToDevice, call.stream);
  }
  const cudaError_t status = honest(call);
  known[shape].assign(call.sorted_token_ids, call.sorted_token_ids + capacity);
  return status;
}
