// layer_operation.h: the operation that every stage with a moe_layer shares, so that one set of
// tests judges all of them.
//   100 moe_layer    integers T E K H I renormalize workspace_bytes calls; buffers out x logits w13
//   w2
//                    workspace, and out_again when calls is 2: the same call once more, into there
//   value 100        moe_layer_workspace_bytes, integers T E K H I
#pragma once

#include <cuda_bf16.h>

#include "stage_calls.h"

namespace moe::runner {

inline constexpr uint32_t kLayerOperation = 100;

// `function` is moe_layer or refuse_moe_layer of some stage; `out` is the number of the output
// buffer.
template <class Function>
auto with_layer_arguments(const StageCall& c, int out, Function function) {
  const auto integer = [&](int index) { return static_cast<int>(c.integers[index]); };
  const auto bf16 = [&](int index) { return static_cast<__nv_bfloat16*>(c.buffers[index]); };
  return function(bf16(out), bf16(1), static_cast<const float*>(c.buffers[2]), bf16(3), bf16(4),
                  integer(0), integer(1), integer(2), integer(3), integer(4), c.integers[5] != 0,
                  c.buffers[5], static_cast<size_t>(c.integers[6]), c.stream);
}

template <class Function>
cudaError_t call_layer(const StageCall& c, Function moe_layer) {
  const cudaError_t status = with_layer_arguments(c, 0, moe_layer);
  if (status != cudaSuccess || c.integers[7] < 2) return status;
  return with_layer_arguments(c, 6, moe_layer);
}

template <class Function>
int64_t layer_workspace_bytes(const StageCall& c, Function moe_layer_workspace_bytes) {
  const auto integer = [&](int index) { return static_cast<int>(c.integers[index]); };
  return static_cast<int64_t>(
      moe_layer_workspace_bytes(integer(0), integer(1), integer(2), integer(3), integer(4)));
}

}  // namespace moe::runner
