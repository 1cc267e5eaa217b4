// The operation grouped_gemm of m2 and of m6:
//   0 grouped_gemm    integers T K E N D block_m rows(0 tokens, 1 slots); buffers out a w
//                     sorted_token_ids expert_ids num_tokens_post_padded
#pragma once

#include <drills/m2_grouped_gemm.h>

#include "stage_calls.h"

namespace moe::runner {

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

}  // namespace moe::runner
