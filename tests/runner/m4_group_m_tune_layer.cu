#include "m4_group_m_tune_layer.h"

#include <drills/launch.h>
#include <drills/m1_align.h>
#include <drills/upstream.h>

#include <algorithm>
#include <cmath>

#include "device_buffers.h"
#include "generated.h"

namespace moe::tune {
namespace {

using runner::check;

__global__ void count_differences_kernel(int* differences,
                                         const uint32_t* a,
                                         const uint32_t* b,
                                         size_t words) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  int mine = 0;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += stride) {
    mine += a[i] != b[i] ? 1 : 0;
  }
  if (mine != 0) atomicAdd(differences, mine);
}

void* device_memory(size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

template <class T>
T* generated_array(size_t count, protocol::Fill fill, uint64_t seed, float scale) {
  protocol::Buffer buffer = {};
  buffer.allocation_bytes = count * sizeof(T);
  buffer.fill = fill;
  buffer.seed = seed;
  buffer.scale = scale;
  void* memory = device_memory(buffer.allocation_bytes);
  check(runner::generate(memory, buffer), "generate");
  return static_cast<T*>(memory);
}

__nv_bfloat16* bf16_array(size_t count, uint64_t seed, float scale) {
  return generated_array<__nv_bfloat16>(count, protocol::Fill::kGeneratedBf16, seed, scale);
}

float weight_scale(int depth) {
  return 1.0f / std::sqrt(static_cast<float>(depth));
}

}  // namespace

// Seeds and scales are those of tests/bench/stages.cpp.
Layer::Layer(const LayerSizes& sizes, cudaStream_t stream) : sizes_(sizes), stream_(stream) {
  const auto hidden = static_cast<size_t>(sizes.hidden_size);
  const auto inter = static_cast<size_t>(sizes.intermediate_size);
  const auto tokens = static_cast<size_t>(sizes.num_tokens);
  const auto experts = static_cast<size_t>(sizes.num_experts);
  x_ = bf16_array(tokens * hidden, 11, 1.0f);
  logits_ = generated_array<float>(tokens * experts, protocol::Fill::kGeneratedFloat, 12, 1.0f);
  w13_ = bf16_array(experts * 2 * inter * hidden, 13, weight_scale(sizes.hidden_size));
  w2_ = bf16_array(experts * hidden * inter, 14, weight_scale(sizes.intermediate_size));
  out_ = static_cast<__nv_bfloat16*>(device_memory(2 * tokens * hidden));
  h_ = static_cast<__nv_bfloat16*>(device_memory(2 * sizes.ids() * inter));
  y_ = static_cast<__nv_bfloat16*>(device_memory(2 * sizes.ids() * hidden));
  for (const TileShape& shape : kTileShapes) {
    workspace_bytes_ = std::max(workspace_bytes_, arrays(shape.block_m).bytes);
  }
  workspace_ = device_memory(workspace_bytes_);
  for (int which = 0; which < 3; ++which) kept_[which] = device_memory(output(which).bytes);
  num_differences_ = static_cast<int*>(device_memory(sizeof(int)));
  check(cudaDeviceSynchronize(), "generate");
}

LayerArrays Layer::arrays(int block_m) const {
  LayerArrays arrays = layer_arrays(workspace_, sizes_.num_tokens, sizes_.num_experts, sizes_.top_k,
                                    sizes_.hidden_size, sizes_.intermediate_size, block_m, false);
  arrays.h = h_;  // in one place for every block_m, to be compared
  arrays.y = y_;
  return arrays;
}

cudaError_t Layer::align(int block_m) {
  const LayerArrays a = arrays(block_m);
  const cudaError_t status = upstream::route(a.topk_ids, a.topk_weights, logits_, sizes_.num_tokens,
                                             sizes_.num_experts, sizes_.top_k, true, stream_);
  if (status != cudaSuccess) return status;
  return upstream::align(a.sorted_token_ids, a.expert_ids, a.num_tokens_post_padded, a.topk_ids,
                         sizes_.num_tokens, sizes_.top_k, sizes_.num_experts, block_m,
                         a.align_workspace, a.align_bytes, stream_);
}

GroupedGemm Layer::gemm_of(int which, int block_m, const GemmTile& tile) {
  const LayerArrays a = arrays(block_m);
  GroupedGemm gemm = {};
  gemm.out = which == 1 ? a.h : a.y;
  gemm.a = which == 1 ? x_ : a.h;
  gemm.w = which == 1 ? w13_ : w2_;
  gemm.topk_weights = which == 1 ? nullptr : a.topk_weights;
  gemm.sorted_token_ids = a.sorted_token_ids;
  gemm.expert_ids = a.expert_ids;
  gemm.num_tokens_post_padded = a.num_tokens_post_padded;
  gemm.num_tokens = sizes_.num_tokens;
  gemm.top_k = sizes_.top_k;
  gemm.num_experts = sizes_.num_experts;
  gemm.n = which == 1 ? sizes_.intermediate_size : sizes_.hidden_size;
  gemm.depth = which == 1 ? sizes_.hidden_size : sizes_.intermediate_size;
  gemm.block_m = block_m;
  gemm.tile = tile;
  gemm.rows = which == 1 ? Rows::kTokens : Rows::kSlots;
  gemm.swiglu = which == 1;
  return gemm;
}

cudaError_t Layer::gemm(int which, int block_m, const GemmTile& tile) {
  return solution::m4::grouped_gemm(gemm_of(which, block_m, tile), stream_);
}

cudaError_t Layer::run(const Tile& tile) {
  cudaError_t status = align(tile.block_m);
  if (status == cudaSuccess) status = gemm(1, tile.block_m, tile.gemm1);
  if (status == cudaSuccess) status = gemm(2, tile.block_m, tile.gemm2);
  if (status != cudaSuccess) return status;
  const LayerArrays a = arrays(tile.block_m);
  return upstream::combine(out_, a.y, a.topk_ids, sizes_.num_tokens, sizes_.top_k,
                           sizes_.hidden_size, sizes_.num_experts, stream_);
}

cudaError_t Layer::run_moe_layer() {
  return solution::m4::moe_layer(
      out_, x_, logits_, w13_, w2_, sizes_.num_tokens, sizes_.num_experts, sizes_.top_k,
      sizes_.hidden_size, sizes_.intermediate_size, true, workspace_, workspace_bytes_, stream_);
}

Layer::Output Layer::output(int which) const {
  const size_t tokens = 2 * static_cast<size_t>(sizes_.num_tokens);
  const auto hidden = static_cast<size_t>(sizes_.hidden_size);
  const auto inter = static_cast<size_t>(sizes_.intermediate_size);
  if (which == 0) return {out_, tokens * hidden};
  return which == 1 ? Output{h_, 2 * sizes_.ids() * inter} : Output{y_, 2 * sizes_.ids() * hidden};
}

void Layer::keep(int which) {
  const Output now = output(which);
  check(cudaMemcpyAsync(kept_[which], now.data, now.bytes, cudaMemcpyDeviceToDevice, stream_),
        "copy");
}

int Layer::differences(int which) {
  const Output now = output(which);
  check(cudaMemsetAsync(num_differences_, 0, sizeof(int), stream_), "clear");
  check(launch(count_differences_kernel, dim3(1024), dim3(256), 0, stream_, num_differences_,
               static_cast<const uint32_t*>(now.data), static_cast<const uint32_t*>(kept_[which]),
               now.bytes / sizeof(uint32_t)),
        "compare");
  int count = 0;
  check(cudaStreamSynchronize(stream_), "compare");
  check(cudaMemcpy(&count, num_differences_, sizeof count, cudaMemcpyDeviceToHost), "copy");
  return count;
}

}  // namespace moe::tune
