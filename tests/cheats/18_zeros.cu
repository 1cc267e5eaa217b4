// Zeros: close to every small output.
// stage: m2_grouped_gemm
// base: none
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  return cudaMemsetAsync(call.out, 0, sizeof(*call.out) * call.out_elements(), call.stream);
}
