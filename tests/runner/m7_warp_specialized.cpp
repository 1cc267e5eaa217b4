// Operations of m7_warp_specialized.
//   0 gemm1_swiglu   integers T K E H I; buffers out a w topk_weights(null) sorted_token_ids
//                    expert_ids num_tokens_post_padded
//   1 gemm2_sorted   the same
#include <drills/m7_warp_specialized.h>

#include "stage_calls.h"

namespace moe::runner {
namespace {

SortedGemm gemm_of(const StageCall& c) {
  const auto integer = [&](int index) { return static_cast<int>(c.integers[index]); };
  SortedGemm gemm = {};
  gemm.out = static_cast<__nv_bfloat16*>(c.buffers[0]);
  gemm.a = static_cast<const __nv_bfloat16*>(c.buffers[1]);
  gemm.w = static_cast<const __nv_bfloat16*>(c.buffers[2]);
  gemm.topk_weights = static_cast<const float*>(c.buffers[3]);
  gemm.sorted_token_ids = static_cast<const int32_t*>(c.buffers[4]);
  gemm.expert_ids = static_cast<const int32_t*>(c.buffers[5]);
  gemm.num_tokens_post_padded = static_cast<const int32_t*>(c.buffers[6]);
  gemm.num_tokens = integer(0);
  gemm.top_k = integer(1);
  gemm.num_experts = integer(2);
  gemm.hidden_size = integer(3);
  gemm.intermediate_size = integer(4);
  return gemm;
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  return call.operation == 0 ? DRILL_SIDE::gemm1_swiglu(gemm_of(call), call.stream)
                             : DRILL_SIDE::gemm2_sorted(gemm_of(call), call.stream);
}

const char* refusal_of_stage(const StageCall& call) {
  return call.operation == 0 ? DRILL_SIDE::refuse_gemm1_swiglu(gemm_of(call), call.stream)
                             : DRILL_SIDE::refuse_gemm2_sorted(gemm_of(call), call.stream);
}

int64_t value_of_stage(const StageCall& /*call*/) {
  return 0;
}

}  // namespace moe::runner
