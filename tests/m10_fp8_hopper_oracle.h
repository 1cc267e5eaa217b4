// The meaning of moe_layer_fp8 in double, on the codes: x is quantised as in m5, h by the same
// rules from its exact value. The known mistakes are switches of the same function.
#pragma once

#include <cstdint>
#include <vector>

#include "judge/bf16.h"
#include "judge/compare.h"
#include "judge/fp8.h"

namespace moe::oracle {

// Codes [rows, depth], and a scale for each 128 of a row, or for each 128 x 128.
struct Coded {
  std::vector<judge::Fp8> codes;
  std::vector<float> scales;
};

struct Fp8LayerProblem {
  int num_tokens = 0;
  int num_experts = 0;
  int top_k = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  bool renormalize = false;
  bool out_fp32 = false;
  bool exact = false;          // h is exact, and each output one term: fp32 output is nearly exact
  std::vector<judge::Bf16> x;  // [T, H]
  std::vector<float> logits;   // [T, E]
  Coded w13;                   // [E, 2I, H]; NaN for experts that nobody chose
  Coded w2;                    // [E, H, I]

  int num_ids() const { return num_tokens * top_k; }
};

// What a layer does otherwise than it should; in both GEMMs where not said otherwise.
struct Fp8LayerMistake {
  bool no_a_scale = false;
  bool no_w_scale = false;
  bool first_a_scale = false;        // that of block 0 of the reduction
  bool first_w_scale = false;        // that of block 0 of the reduction
  bool scale_of_first_half = false;  // W's second half gets the scale of the first
  bool codes_of_first_half = false;  // W's second half is the first, with the scale of the second
  bool up_is_next_gate = false;      // GEMM1's second half: the next 128 rows of W
  bool first_x_block = false;        // GEMM1: every turn multiplies the first 128 codes of x
  bool last_step_missing = false;    // 32 of every 128 are left out
  bool last_block_only = false;      // a turn overwrites
  bool row_is_flat_id = false;       // GEMM1; anything behind the last token
  bool x_scale_of_first_token = false;
  bool x_power_of_two = false;     // m5's option
  int amax_lanes = 4;              // 1, 2: of four lanes that share a row of h
  bool amax_of_positive = false;   // of h
  bool codes_not_divided = false;  // of h
  int weight = 1;                  // how often it is applied
};

// out [T, H].
judge::Matrix moe_layer_fp8(const Fp8LayerProblem& p, const Fp8LayerMistake& mistake = {});

// A code of h that is open: h lies so close to the boundary to another code that the error of a
// right sum decides.
struct OpenCode {
  int token;
  std::vector<double> change;  // of the token's outputs, with the other code
};

// The layer, and what a right kernel may have instead.
struct Fp8LayerReference {
  judge::Matrix out;
  std::vector<OpenCode> open;  // in ascending order of tokens
};
Fp8LayerReference fp8_layer_reference(const Fp8LayerProblem& p);

// How many slots each expert has.
std::vector<int> rows_of_experts(const Fp8LayerProblem& p);

}  // namespace moe::oracle
