// Operations of m2_grouped_gemm.
//   0 grouped_gemm    integers T K E N D block_m rows(0 tokens, 1 slots); buffers out a w
//                     sorted_token_ids expert_ids num_tokens_post_padded
#include <drills/m2_grouped_gemm.h>

#include "stage_calls.h"

namespace moe::runner {
namespace {

template <class Function>
auto with_arguments(const StageCall& c, Function function) {
  const auto integer = [&](int index) { return static_cast<int>(c.integers[index]); };
  return function(
      static_cast<__nv_bfloat16*>(c.buffers[0]), static_cast<const __nv_bfloat16*>(c.buffers[1]),
      static_cast<const __nv_bfloat16*>(c.buffers[2]), static_cast<const int32_t*>(c.buffers[3]),
      static_cast<const int32_t*>(c.buffers[4]), static_cast<const int32_t*>(c.buffers[5]),
      integer(0), integer(1), integer(2), integer(3), integer(4), integer(5),
      integer(6) == 0 ? Rows::kTokens : Rows::kSlots, c.stream);
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  return with_arguments(call, DRILL_SIDE::grouped_gemm);
}

const char* refusal_of_stage(const StageCall& call) {
  return with_arguments(call, DRILL_SIDE::refuse_grouped_gemm);
}

int64_t value_of_stage(const StageCall& /*call*/) {
  return 0;
}

}  // namespace moe::runner
