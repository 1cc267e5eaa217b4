// Operations of m6_wgmma: grouped_gemm_operation.h.
#include <drills/m6_wgmma.h>

#include "grouped_gemm_operation.h"
#include "stage_calls.h"

namespace moe::runner {

cudaError_t call_stage(const StageCall& call) {
  return with_arguments(call, DRILL_SIDE::m6::grouped_gemm);
}

const char* refusal_of_stage(const StageCall& call) {
  return with_arguments(call, DRILL_SIDE::m6::refuse_grouped_gemm);
}

int64_t value_of_stage(const StageCall& /*call*/) {
  return 0;
}

}  // namespace moe::runner
