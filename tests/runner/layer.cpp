// Operations of the layer that the library chooses (library/moe_layer.h).
//   100 moe_layer    layer_operation.h
#include "library/moe_layer.h"

#include "layer_operation.h"
#include "stage_calls.h"

namespace moe::runner {
namespace {

const library::Layer& chosen(const StageCall& call) {
  const auto integer = [&](int index) { return static_cast<int>(call.integers[index]); };
  return library::layer_for({integer(0), integer(1), integer(2), integer(3), integer(4)});
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  return call_layer(call, chosen(call).run);
}

const char* refusal_of_stage(const StageCall& call) {
  return with_layer_arguments(call, 0, chosen(call).refuse);
}

int64_t value_of_stage(const StageCall& call) {
  return layer_workspace_bytes(call, chosen(call).workspace_bytes);
}

}  // namespace moe::runner
