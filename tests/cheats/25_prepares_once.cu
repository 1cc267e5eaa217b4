// Keeps the weights of the first call: other weights come with the next.
// stage: m2_grouped_gemm
// base: solution
// expect: WRONG
// gpu: CRASH

#include <map>
#include <vector>
static cudaError_t cheat(const Call& call) {
  static std::map<std::vector<int>, std::vector<__nv_bfloat16>> known;
  const std::size_t count = static_cast<std::size_t>(call.num_experts) *
                            static_cast<std::size_t>(call.n) * static_cast<std::size_t>(call.depth);
  if (count > 1'000'000) return honest(call);
  auto& kept = known[{call.num_tokens, call.top_k, call.num_experts, call.n, call.depth}];
  if (kept.empty()) kept.assign(call.w, call.w + count);
  Call with_kept = call;
  with_kept.w = kept.data();
  return honest(with_kept);
}
