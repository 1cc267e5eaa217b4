// m4_group_m_tune_layer.h: the layer that `drill tune` measures: its data, its two GEMMs and the
// whole of it, each with any tile.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <drills/layer_arrays.h>
#include <drills/m4_group_m.h>

#include <cstdint>

namespace moe::tune {

struct LayerSizes {
  int num_tokens = 4096;
  int num_experts = 64;
  int top_k = 8;
  int hidden_size = 2048;
  int intermediate_size = 768;

  size_t ids() const { return static_cast<size_t>(num_tokens) * static_cast<size_t>(top_k); }
  // GEMM 1 or 2.
  double flops(int which) const {
    return (which == 1 ? 4.0 : 2.0) * static_cast<double>(ids()) * hidden_size * intermediate_size;
  }
};

// Everything lies on the device; data are random, as in bench.
class Layer {
 public:
  Layer(const LayerSizes& sizes, cudaStream_t stream);

  const LayerSizes& sizes() const { return sizes_; }
  // Routes, and makes the table for one block_m: the GEMMs that follow use it.
  cudaError_t align(int block_m);
  // GEMM 1 or 2 of the layer with this tile, on the table of the last align(). GEMM2 reads the h
  // that is there: call GEMM1 first.
  cudaError_t gemm(int which, int block_m, const GemmTile& tile);
  // All six steps with this tile.
  cudaError_t run(const Tile& tile);
  // moe_layer itself, with the tile that pick_tile gives.
  cudaError_t run_moe_layer();

  // A copy of what the last calls left in h (which = 1), y (2) or out (0), and the number of
  // 32-bit words in which it differs now.
  void keep(int which);
  int differences(int which);

 private:
  struct Output {
    void* data = nullptr;
    size_t bytes = 0;
  };
  Output output(int which) const;
  LayerArrays arrays(int block_m) const;
  GroupedGemm gemm_of(int which, int block_m, const GemmTile& tile);

  LayerSizes sizes_;
  cudaStream_t stream_;
  __nv_bfloat16 *x_ = nullptr, *w13_ = nullptr, *w2_ = nullptr;
  __nv_bfloat16 *out_ = nullptr, *h_ = nullptr, *y_ = nullptr;
  float* logits_ = nullptr;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  void* kept_[3] = {};
  int* num_differences_ = nullptr;
};

}  // namespace moe::tune
