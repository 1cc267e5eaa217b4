// Operations of m9_decode.
//   100 moe_layer    layer_operation.h
#include <drills/m9_decode.h>

#include "layer_operation.h"
#include "stage_calls.h"

namespace moe::runner {

namespace stage = DRILL_SIDE::m9;

cudaError_t call_stage(const StageCall& call) {
  return call_layer(call, stage::moe_layer);
}

const char* refusal_of_stage(const StageCall& call) {
  return with_layer_arguments(call, 0, stage::refuse_moe_layer);
}

int64_t value_of_stage(const StageCall& call) {
  return layer_workspace_bytes(call, stage::moe_layer_workspace_bytes);
}

}  // namespace moe::runner
