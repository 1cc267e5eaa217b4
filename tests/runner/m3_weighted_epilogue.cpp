// Operations of m3_weighted_epilogue.
//   0 silu_and_mul            integers T*K I; buffers h gate_up
//   1 grouped_gemm_weighted   integers T K E N D block_m rows(0 tokens, 1 slots); buffers out a w
//                             topk_weights sorted_token_ids expert_ids num_tokens_post_padded
//   2 combine                 integers T K H E; buffers out y topk_ids
//   100 moe_layer             layer_operation.h
#include <drills/m3_weighted_epilogue.h>

#include "layer_operation.h"
#include "stage_calls.h"

namespace moe::runner {
namespace {

int integer(const StageCall& call, int index) {
  return static_cast<int>(call.integers[index]);
}

__nv_bfloat16* bf16(const StageCall& call, int index) {
  return static_cast<__nv_bfloat16*>(call.buffers[index]);
}

const int32_t* ids(const StageCall& call, int index) {
  return static_cast<const int32_t*>(call.buffers[index]);
}

template <class Function>
auto with_silu_arguments(const StageCall& c, Function function) {
  return function(bf16(c, 0), bf16(c, 1), integer(c, 0), integer(c, 1), c.stream);
}

template <class Function>
auto with_gemm_arguments(const StageCall& c, Function function) {
  return function(bf16(c, 0), bf16(c, 1), bf16(c, 2), static_cast<const float*>(c.buffers[3]),
                  ids(c, 4), ids(c, 5), ids(c, 6), integer(c, 0), integer(c, 1), integer(c, 2),
                  integer(c, 3), integer(c, 4), integer(c, 5),
                  integer(c, 6) == 0 ? Rows::kTokens : Rows::kSlots, c.stream);
}

template <class Function>
auto with_combine_arguments(const StageCall& c, Function function) {
  return function(bf16(c, 0), bf16(c, 1), ids(c, 2), integer(c, 0), integer(c, 1), integer(c, 2),
                  integer(c, 3), c.stream);
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  switch (call.operation) {
    case 0:
      return with_silu_arguments(call, DRILL_SIDE::silu_and_mul);
    case 1:
      return with_gemm_arguments(call, DRILL_SIDE::grouped_gemm_weighted);
    case 2:
      return with_combine_arguments(call, DRILL_SIDE::combine);
    default:
      return call_layer(call, DRILL_SIDE::moe_layer);
  }
}

const char* refusal_of_stage(const StageCall& call) {
  switch (call.operation) {
    case 0:
      return with_silu_arguments(call, DRILL_SIDE::refuse_silu_and_mul);
    case 1:
      return with_gemm_arguments(call, DRILL_SIDE::refuse_grouped_gemm_weighted);
    case 2:
      return with_combine_arguments(call, DRILL_SIDE::refuse_combine);
    default:
      return with_layer_arguments(call, 0, DRILL_SIDE::refuse_moe_layer);
  }
}

int64_t value_of_stage(const StageCall& call) {
  return layer_workspace_bytes(call, DRILL_SIDE::moe_layer_workspace_bytes);
}

}  // namespace moe::runner
