// Calls our solution.
// stage: m1_align
// base: none
// expect: BUILD
// says: undefined reference

namespace moe::solution {
size_t align_workspace_bytes(int num_tokens, int top_k, int num_experts, int block_m);
}
static cudaError_t cheat(const Call&) {
  return moe::solution::align_workspace_bytes(1, 1, 1, 16) > 0 ? cudaSuccess
                                                              : cudaErrorInvalidValue;
}
