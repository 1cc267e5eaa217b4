// The meaning of moe_layer in double: h is rounded to bf16 once, nothing else is. The known
// mistakes of the order of calls are switches of the same function.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/bf16.h"
#include "judge/compare.h"

namespace moe::oracle {

struct LayerProblem {
  int num_tokens = 0;
  int num_experts = 0;
  int top_k = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  bool renormalize = false;
  bool exact = false;            // every step but the last rounding is exact
  std::vector<judge::Bf16> x;    // [T, H]
  std::vector<float> logits;     // [T, E]
  std::vector<judge::Bf16> w13;  // [E, 2I, H]; NaN for experts that nobody chose
  std::vector<judge::Bf16> w2;   // [E, H, I]

  int num_ids() const { return num_tokens * top_k; }
};

// What a layer does otherwise than it should.
struct LayerMistake {
  bool weight_in_gemm1 = false;
  bool weight_in_gemm2 = true;
  bool flip_renormalize = false;
  bool gemm1_row_is_flat_id = false;  // NaN behind the last token
  bool gemm2_row_is_token = false;    // flat_id / K
};

// out [T, H].
judge::Matrix moe_layer(const LayerProblem& p, const LayerMistake& mistake = {});

}  // namespace moe::oracle
