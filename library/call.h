// call.h: what all functions of the C interface share: rules and errors in words, casts of types.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <drills/m2_grouped_gemm.h>

#include <cstdio>

#include "moe_drills.h"

namespace moe::library {

inline thread_local char last_error[256] = "";

// One call: the rule that it breaks, or what it returned. The rule is asked here too, as the
// function itself only says that there is one.
template <class Refuse, class Call, class... Arguments>
int answer(const char* name, Refuse refuse, Call call, Arguments... arguments) {
  if (const char* rule = refuse(arguments...)) {
    std::snprintf(last_error, sizeof last_error, "%s: %s", name, rule);
    return MOE_DRILLS_INVALID_VALUE;
  }
  const cudaError_t status = call(arguments...);
  last_error[0] = '\0';
  if (status != cudaSuccess) {
    std::snprintf(last_error, sizeof last_error, "%s: %s: %s", name, cudaGetErrorName(status),
                  cudaGetErrorString(status));
  }
  return static_cast<int>(status);
}

inline int refused(const char* name, const char* rule) {
  const auto say = [rule] { return rule; };
  return answer(name, say, [] { return cudaSuccess; });
}

inline __nv_bfloat16* bf16(moe_drills_bf16* values) {
  return reinterpret_cast<__nv_bfloat16*>(values);
}
inline const __nv_bfloat16* bf16(const moe_drills_bf16* values) {
  return reinterpret_cast<const __nv_bfloat16*>(values);
}
inline __nv_fp8_e4m3* e4m3(moe_drills_e4m3* codes) {
  return reinterpret_cast<__nv_fp8_e4m3*>(codes);
}
inline const __nv_fp8_e4m3* e4m3(const moe_drills_e4m3* codes) {
  return reinterpret_cast<const __nv_fp8_e4m3*>(codes);
}
inline cudaStream_t stream_of(void* stream) {
  return static_cast<cudaStream_t>(stream);
}

// Helpers that return a value have no error: 0 where the sizes would be refused.
inline bool are_sizes(int num_tokens, int num_experts, int top_k) {
  return refuse_sizes(num_tokens, num_experts, top_k) == nullptr;
}

inline constexpr const char* kUnknownRows =
    "rows must be MOE_DRILLS_ROWS_TOKENS or MOE_DRILLS_ROWS_SLOTS";

inline bool are_rows(int rows) {
  return rows == MOE_DRILLS_ROWS_TOKENS || rows == MOE_DRILLS_ROWS_SLOTS;
}
inline Rows rows_of(int rows) {
  return rows == MOE_DRILLS_ROWS_TOKENS ? Rows::kTokens : Rows::kSlots;
}

}  // namespace moe::library
