// layer_arrays.h: what the steps of a layer hand to each other, and where in the workspace it lies.
//
// Given, for every moe_layer that works in these six steps. A layer of another form may lay out its
// workspace as it likes.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include <drills/upstream.h>

namespace moe {

// The block_m of both GEMMs: about the rows that an expert gets if all get the same, so that little
// of a block is padding. From 128 rows on, the padding is small and the larger tile reads W less
// often.
inline int layer_block_m(int num_tokens, int top_k, int num_experts) {
  const int rows = num_tokens * top_k / num_experts;
  if (rows <= 16) return 16;
  if (rows <= 32) return 32;
  return rows < 128 ? 64 : 128;
}

struct LayerArrays {
  int32_t* topk_ids;                // [T, K]
  float* topk_weights;              // [T, K]
  int32_t* sorted_token_ids;        // [capacity]
  int32_t* expert_ids;              // [capacity / block_m]
  int32_t* num_tokens_post_padded;  // [1]
  void* align_workspace;            // [align_bytes]
  __nv_bfloat16* gate_up;           // [T*K, 2I], or null where GEMM1 does SwiGLU
  __nv_bfloat16* h;                 // [T*K, I]
  __nv_bfloat16* y;                 // [T*K, H]
  size_t align_bytes;
  size_t bytes;  // of all
};

// Hands out parts of a workspace, each 256-byte aligned (null where nothing is asked for).
// Of a null workspace only bytes() means something.
class WorkspaceParts {
 public:
  explicit WorkspaceParts(void* workspace) : start_(reinterpret_cast<uintptr_t>(workspace)) {}

  template <class T>
  T* take(size_t count) {
    if (count == 0) return nullptr;
    T* part = reinterpret_cast<T*>(start_ + bytes_);
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return part;
  }
  size_t bytes() const { return bytes_; }

 private:
  uintptr_t start_;
  size_t bytes_ = 0;
};

inline LayerArrays layer_arrays(void* workspace,
                                int num_tokens,
                                int num_experts,
                                int top_k,
                                int hidden_size,
                                int intermediate_size,
                                int block_m,
                                bool with_gate_up = true) {
  const size_t ids = static_cast<size_t>(num_tokens) * static_cast<size_t>(top_k);
  const size_t capacity = align_capacity(num_tokens, top_k, num_experts, block_m);
  WorkspaceParts parts(workspace);
  LayerArrays arrays = {};
  arrays.align_bytes = upstream::align_workspace_bytes(num_tokens, top_k, num_experts, block_m);
  arrays.topk_ids = parts.take<int32_t>(ids);
  arrays.topk_weights = parts.take<float>(ids);
  arrays.sorted_token_ids = parts.take<int32_t>(capacity);
  arrays.expert_ids = parts.take<int32_t>(capacity / static_cast<size_t>(block_m));
  arrays.num_tokens_post_padded = parts.take<int32_t>(1);
  arrays.align_workspace = parts.take<unsigned char>(arrays.align_bytes);
  if (with_gate_up) {
    arrays.gate_up = parts.take<__nv_bfloat16>(ids * 2 * static_cast<size_t>(intermediate_size));
  }
  arrays.h = parts.take<__nv_bfloat16>(ids * static_cast<size_t>(intermediate_size));
  arrays.y = parts.take<__nv_bfloat16>(ids * static_cast<size_t>(hidden_size));
  arrays.bytes = parts.bytes();
  return arrays;
}

}  // namespace moe
