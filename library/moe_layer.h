// moe_layer.h: which stage's moe_layer serves which sizes on which GPU. All have one signature.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstddef>

namespace moe::library {

struct LayerSizes {
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
};

using MoeLayer = cudaError_t(__nv_bfloat16* out,        // [T, H]
                             const __nv_bfloat16* x,    // [T, H]
                             const float* logits,       // [T, E]
                             const __nv_bfloat16* w13,  // [E, 2I, H]
                             const __nv_bfloat16* w2,   // [E, H, I]
                             int num_tokens,
                             int num_experts,
                             int top_k,
                             int hidden_size,
                             int intermediate_size,
                             bool renormalize,
                             void* workspace,
                             size_t workspace_bytes,
                             cudaStream_t stream);
using RefuseMoeLayer = const char*(const __nv_bfloat16* out,
                                   const __nv_bfloat16* x,
                                   const float* logits,
                                   const __nv_bfloat16* w13,
                                   const __nv_bfloat16* w2,
                                   int num_tokens,
                                   int num_experts,
                                   int top_k,
                                   int hidden_size,
                                   int intermediate_size,
                                   bool renormalize,
                                   const void* workspace,
                                   size_t workspace_bytes,
                                   cudaStream_t stream);
using WorkspaceBytes =
    size_t(int num_tokens, int num_experts, int top_k, int hidden_size, int intermediate_size);

struct Layer {
  const char* stage;               // "m4"
  int max_num_tokens;              // it serves T up to this
  const char* (*refuse_device)();  // its rule about the GPU (drills/capability.h); null: any
  WorkspaceBytes* workspace_bytes;
  RefuseMoeLayer* refuse;
  MoeLayer* run;
};

// The first line of the table in moe_layer.cpp that serves these sizes on the current device. Every
// answer is good for the sizes alone, so that the workspace of a call is asked of the same stage.
const Layer& layer_for(const LayerSizes& sizes);

}  // namespace moe::library
