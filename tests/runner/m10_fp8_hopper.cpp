// Operations of m10_fp8_hopper.
//   0 moe_layer_fp8    integers T E K H I renormalize workspace_bytes calls out_fp32; buffers out x
//                      logits w13_codes w13_scales w2_codes w2_scales workspace, and out_again when
//                      calls is 2: the same call once more, into there
//   value 0            moe_layer_fp8_workspace_bytes, integers T E K H I out_fp32
#include <drills/m10_fp8_hopper.h>

#include "stage_calls.h"

namespace moe::runner {

namespace stage = DRILL_SIDE::m10;

namespace {

// `function` is moe_layer_fp8 or its refusal; `out` is the number of the output buffer.
template <class Function>
auto with_arguments(const StageCall& c, int out, Function function) {
  const auto integer = [&](int index) { return static_cast<int>(c.integers[index]); };
  const auto scales = [&](int index) { return static_cast<const float*>(c.buffers[index]); };
  const auto codes = [&](int index) { return static_cast<const __nv_fp8_e4m3*>(c.buffers[index]); };
  return function(c.buffers[out], c.integers[8] != 0,
                  static_cast<const __nv_bfloat16*>(c.buffers[1]), scales(2), codes(3), scales(4),
                  codes(5), scales(6), integer(0), integer(1), integer(2), integer(3), integer(4),
                  c.integers[5] != 0, c.buffers[7], static_cast<size_t>(c.integers[6]), c.stream);
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  const cudaError_t status = with_arguments(call, 0, stage::moe_layer_fp8);
  if (status != cudaSuccess || call.integers[7] < 2) return status;
  return with_arguments(call, 8, stage::moe_layer_fp8);
}

const char* refusal_of_stage(const StageCall& call) {
  return with_arguments(call, 0, stage::refuse_moe_layer_fp8);
}

int64_t value_of_stage(const StageCall& c) {
  const auto integer = [&](int index) { return static_cast<int>(c.integers[index]); };
  return static_cast<int64_t>(stage::moe_layer_fp8_workspace_bytes(
      integer(0), integer(1), integer(2), integer(3), integer(4), c.integers[5] != 0));
}

}  // namespace moe::runner
