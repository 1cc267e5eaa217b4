// Fills the output with NaN, which compares as neither larger nor smaller.
// stage: m2_grouped_gemm
// base: none
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  return cudaMemsetAsync(call.out, 0xff, sizeof(*call.out) * call.out_elements(), call.stream);
}
