// The same for the grouped GEMM: NaN, infinities, huge and subnormal values among the rest.
// stage: m2_grouped_gemm
// base: none
// expect: WRONG

static cudaError_t cheat(const Call& call) {
  static uint32_t state = 17;
  auto* bits = reinterpret_cast<unsigned short*>(call.out);
  for (size_t i = 0; i < call.out_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    bits[i] = static_cast<unsigned short>(state >> 13);
  }
  return cudaSuccess;
}
