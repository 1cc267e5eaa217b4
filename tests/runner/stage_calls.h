// stage_calls.h: what a stage gives to the runner. Each tests/runner/mN_topic.cpp defines these
// three for its contract; integers and buffers come from the request in the order that its header
// comment says.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace moe::runner {

struct StageCall {
  uint32_t operation;
  const int64_t* integers;
  void* const* buffers;
  cudaStream_t stream;
};

cudaError_t call_stage(const StageCall& call);
const char* refusal_of_stage(const StageCall& call);
int64_t value_of_stage(const StageCall& call);

}  // namespace moe::runner
