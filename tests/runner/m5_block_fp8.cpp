// Operations of m5_block_fp8.
//   0 quantize_rows       integers rows D power_of_two; buffers codes scales values
//   1 quantize_weights    integers E N D power_of_two; buffers codes scales w
//   2 grouped_gemm_fp8    integers T K E N D block_m rows(0 tokens, 1 slots) out_fp32; buffers out
//   a_codes
//                         a_scales w_codes w_scales topk_weights sorted_token_ids expert_ids
//                         num_tokens_post_padded
//   value 0               power_of_two_at_least: bits of a float in, bits of a float out
#include <drills/m5_block_fp8.h>

#include <cstring>

#include "stage_calls.h"

namespace moe::runner {
namespace {

int integer(const StageCall& call, int index) {
  return static_cast<int>(call.integers[index]);
}

template <class Function>
auto with_rows(const StageCall& c, Function function) {
  return function(static_cast<__nv_fp8_e4m3*>(c.buffers[0]), static_cast<float*>(c.buffers[1]),
                  static_cast<const __nv_bfloat16*>(c.buffers[2]), integer(c, 0), integer(c, 1),
                  c.integers[2] != 0, c.stream);
}

template <class Function>
auto with_weights(const StageCall& c, Function function) {
  return function(static_cast<__nv_fp8_e4m3*>(c.buffers[0]), static_cast<float*>(c.buffers[1]),
                  static_cast<const __nv_bfloat16*>(c.buffers[2]), integer(c, 0), integer(c, 1),
                  integer(c, 2), c.integers[3] != 0, c.stream);
}

template <class Function>
auto with_gemm(const StageCall& c, Function function) {
  return function(
      c.buffers[0], c.integers[7] != 0, static_cast<const __nv_fp8_e4m3*>(c.buffers[1]),
      static_cast<const float*>(c.buffers[2]), static_cast<const __nv_fp8_e4m3*>(c.buffers[3]),
      static_cast<const float*>(c.buffers[4]), static_cast<const float*>(c.buffers[5]),
      static_cast<const int32_t*>(c.buffers[6]), static_cast<const int32_t*>(c.buffers[7]),
      static_cast<const int32_t*>(c.buffers[8]), integer(c, 0), integer(c, 1), integer(c, 2),
      integer(c, 3), integer(c, 4), integer(c, 5),
      integer(c, 6) == 0 ? Rows::kTokens : Rows::kSlots, c.stream);
}

}  // namespace

cudaError_t call_stage(const StageCall& call) {
  if (call.operation == 0) return with_rows(call, DRILL_SIDE::quantize_rows);
  if (call.operation == 1) return with_weights(call, DRILL_SIDE::quantize_weights);
  return with_gemm(call, DRILL_SIDE::grouped_gemm_fp8);
}

const char* refusal_of_stage(const StageCall& call) {
  if (call.operation == 0) return with_rows(call, DRILL_SIDE::refuse_quantize_rows);
  if (call.operation == 1) return with_weights(call, DRILL_SIDE::refuse_quantize_weights);
  return with_gemm(call, DRILL_SIDE::refuse_grouped_gemm_fp8);
}

int64_t value_of_stage(const StageCall& call) {
  auto bits = static_cast<uint32_t>(call.integers[0]);
  float scale = 0.0f;
  std::memcpy(&scale, &bits, sizeof scale);
  scale = DRILL_SIDE::power_of_two_at_least(scale);
  std::memcpy(&bits, &scale, sizeof bits);
  return bits;
}

}  // namespace moe::runner
