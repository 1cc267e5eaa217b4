// Right but for one element: far inside any share of elements.
// stage: m2_grouped_gemm
// base: solution
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  const cudaError_t status = honest(call);
  if (status != cudaSuccess || call.out_elements() == 0) return status;
  return cudaMemsetAsync(call.out + call.out_elements() / 2, 0x41, sizeof(*call.out), call.stream);
}
