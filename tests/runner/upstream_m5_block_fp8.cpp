// What upstream::quantize_rows is in a runner: that of the side that it is linked with.
#include <drills/m5_block_fp8.h>
#include <drills/upstream.h>

namespace moe::upstream {

cudaError_t quantize_rows(__nv_fp8_e4m3* codes,
                          float* scales,
                          const __nv_bfloat16* values,
                          int num_rows,
                          int depth,
                          bool power_of_two,
                          cudaStream_t stream) {
  return DRILL_SIDE::quantize_rows(codes, scales, values, num_rows, depth, power_of_two, stream);
}

}  // namespace moe::upstream
