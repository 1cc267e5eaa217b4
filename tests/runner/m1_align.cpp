// Operations of m1_align.
//   0 route    integers T E K renormalize; buffers topk_ids topk_weights logits
//   1 align    integers T K E block_m workspace_bytes; buffers sorted_token_ids expert_ids
//              num_tokens_post_padded topk_ids workspace
//   2 both     integers T E K renormalize block_m workspace_bytes; buffers topk_ids topk_weights
//   logits
//              sorted_token_ids expert_ids num_tokens_post_padded workspace
//   value 1    align_workspace_bytes, integers T K E block_m
#include <drills/m1_align.h>

#include "stage_calls.h"

namespace moe::runner {
namespace {

int integer(const StageCall& call, int index) {
  return static_cast<int>(call.integers[index]);
}

template <class Function>
auto with_route_arguments(const StageCall& c, Function function) {
  return function(static_cast<int32_t*>(c.buffers[0]), static_cast<float*>(c.buffers[1]),
                  static_cast<const float*>(c.buffers[2]), integer(c, 0), integer(c, 1),
                  integer(c, 2), c.integers[3] != 0, c.stream);
}

template <class Function>
auto with_align_arguments(const StageCall& c, Function function) {
  return function(static_cast<int32_t*>(c.buffers[0]), static_cast<int32_t*>(c.buffers[1]),
                  static_cast<int32_t*>(c.buffers[2]), static_cast<const int32_t*>(c.buffers[3]),
                  integer(c, 0), integer(c, 1), integer(c, 2), integer(c, 3), c.buffers[4],
                  static_cast<size_t>(c.integers[4]), c.stream);
}

// Operation 2: one behind the other.
template <class Route, class Align>
auto with_both(const StageCall& c, Route route, Align align) {
  const auto result = with_route_arguments(c, route);
  if (result) return result;  // an error, or the rule that is broken
  return align(static_cast<int32_t*>(c.buffers[3]), static_cast<int32_t*>(c.buffers[4]),
               static_cast<int32_t*>(c.buffers[5]), static_cast<const int32_t*>(c.buffers[0]),
               integer(c, 0), integer(c, 2), integer(c, 1), integer(c, 4), c.buffers[6],
               static_cast<size_t>(c.integers[5]), c.stream);
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  if (call.operation == 2) return with_both(call, DRILL_SIDE::route, DRILL_SIDE::align);
  return call.operation == 0 ? with_route_arguments(call, DRILL_SIDE::route)
                             : with_align_arguments(call, DRILL_SIDE::align);
}

const char* refusal_of_stage(const StageCall& call) {
  if (call.operation == 2) {
    return with_both(call, DRILL_SIDE::refuse_route, DRILL_SIDE::refuse_align);
  }
  return call.operation == 0 ? with_route_arguments(call, DRILL_SIDE::refuse_route)
                             : with_align_arguments(call, DRILL_SIDE::refuse_align);
}

int64_t value_of_stage(const StageCall& call) {
  return static_cast<int64_t>(DRILL_SIDE::align_workspace_bytes(
      integer(call, 0), integer(call, 1), integer(call, 2), integer(call, 3)));
}

}  // namespace moe::runner
