// The C interface: what it says about itself, and the whole layer. Each stage's functions stand in
// mN_topic.cpp. Types are cast and rules are put into words here; nothing is decided.
#include "moe_drills.h"

#include "call.h"
#include "moe_layer.h"

static_assert(MOE_DRILLS_INVALID_VALUE == cudaErrorInvalidValue);

using moe::library::answer;
using moe::library::are_sizes;
using moe::library::bf16;
using moe::library::Layer;
using moe::library::layer_for;
using moe::library::stream_of;

int moe_drills_abi_version(void) {
  return MOE_DRILLS_ABI_VERSION;
}

const char* moe_drills_backend(void) {
  return MOE_DRILLS_BACKEND;  // set by the build
}

const char* moe_drills_last_error(void) {
  return moe::library::last_error;
}

const char* moe_drills_moe_layer_stage(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  return layer_for({num_tokens, num_experts, top_k, hidden_size, intermediate_size}).stage;
}

size_t moe_drills_moe_layer_workspace_bytes(
    int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size) {
  if (!are_sizes(num_tokens, num_experts, top_k)) return 0;
  return layer_for({num_tokens, num_experts, top_k, hidden_size, intermediate_size})
      .workspace_bytes(num_tokens, num_experts, top_k, hidden_size, intermediate_size);
}

int moe_drills_moe_layer(moe_drills_bf16* out,
                         const moe_drills_bf16* x,
                         const float* logits,
                         const moe_drills_bf16* w13,
                         const moe_drills_bf16* w2,
                         int num_tokens,
                         int num_experts,
                         int top_k,
                         int hidden_size,
                         int intermediate_size,
                         int renormalize,
                         void* workspace,
                         size_t workspace_bytes,
                         void* stream) {
  const Layer& layer = layer_for({num_tokens, num_experts, top_k, hidden_size, intermediate_size});
  return answer("moe_layer", layer.refuse, layer.run, bf16(out), bf16(x), logits, bf16(w13),
                bf16(w2), num_tokens, num_experts, top_k, hidden_size, intermediate_size,
                renormalize != 0, workspace, workspace_bytes, stream_of(stream));
}
