// The meaning of m5_block_fp8 in plain host C++: quantisers bit for bit, the GEMM in double on the
// codes.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/bf16.h"
#include "judge/compare.h"
#include "judge/fp8.h"

namespace moe::oracle {

// ---- Quantisers. Rows are matrices with one row each: a block of 128 x 128 is then one of 1 x
// 128.

struct QuantizeProblem {
  int num_matrices = 0;  // rows, or experts
  int n = 1;             // rows of each matrix
  int depth = 0;
  bool power_of_two = false;
  std::vector<judge::Bf16> values;  // [num_matrices, n, depth]
};

struct Quantized {
  std::vector<judge::Fp8> codes;  // [num_matrices, n, depth]
  std::vector<float> scales;      // [num_matrices, ceil(n/128), ceil(depth/128)]
};

float power_of_two_at_least(float scale);
Quantized quantize(const QuantizeProblem& p);

// ---- GEMM.

struct Fp8GemmProblem {
  int num_tokens = 0;
  int top_k = 0;
  int num_experts = 0;
  int n = 0;
  int depth = 0;
  int block_m = 0;
  bool rows_are_slots = false;
  bool out_fp32 = false;
  bool exact = false;                     // all sums are exact in fp32
  std::vector<int32_t> topk_ids;          // [T, K]
  std::vector<float> topk_weights;        // [T, K], or empty
  std::vector<judge::Fp8> a_codes;        // [T or T*K, D]
  std::vector<float> a_scales;            // [T or T*K, k_blocks]
  std::vector<judge::Fp8> w_codes;        // [E, N, D]
  std::vector<float> w_scales;            // [E, n_blocks, k_blocks]
  std::vector<int32_t> sorted_token_ids;  // [capacity]
  std::vector<int32_t> expert_ids;        // [capacity / block_m]
  int32_t num_tokens_post_padded = 0;
  int first_expert = 0;           // w_codes and w_scales hold the experts from this one on
  std::vector<uint8_t> nan_rows;  // [T*K] rows of out that must be NaN, or empty

  int num_ids() const { return num_tokens * top_k; }
  int rows_of_a() const { return rows_are_slots ? num_ids() : num_tokens; }
  int row_of(int flat_id) const { return rows_are_slots ? flat_id : flat_id / top_k; }
  int expert_of(int flat_id) const { return topk_ids[static_cast<size_t>(flat_id)]; }
  bool routed(int flat_id) const {
    return expert_of(flat_id) >= 0 && expert_of(flat_id) < num_experts;
  }
  int k_blocks() const { return (depth + 127) / 128; }
  int n_blocks() const { return (n + 127) / 128; }
};

// Sums of products of the codes, [T*K, N, k_blocks]: what the scales are applied to. 0 where not
// routed.
struct Partials {
  int n = 0;
  int k_blocks = 0;
  std::vector<double> sums;
  double at(int flat_id, int column, int block) const {
    const auto row =
        static_cast<size_t>(flat_id) * static_cast<size_t>(n) + static_cast<size_t>(column);
    return sums[row * static_cast<size_t>(k_blocks) + static_cast<size_t>(block)];
  }
};
using Decoder = double (*)(judge::Fp8);
Partials partial_sums(const Fp8GemmProblem& p, Decoder decode_a, Decoder decode_w);

// Scales by their place in the arrays; NaN outside of them.
double a_scale_at(const Fp8GemmProblem& p, int64_t index);
double w_scale_at(const Fp8GemmProblem& p, int64_t index);
int64_t a_scale_index(const Fp8GemmProblem& p, int64_t row, int block);
int64_t w_scale_index(const Fp8GemmProblem& p, int expert, int column, int block);

// out [T*K, N]; rows without a routed flat id are kUntouched.
judge::Matrix grouped_gemm_fp8(const Fp8GemmProblem& p);

}  // namespace moe::oracle
