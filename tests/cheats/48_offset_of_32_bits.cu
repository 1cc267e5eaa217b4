// Offsets that wrap at 2^31: only the far case reaches them.
// stage: m2_grouped_gemm
// base: solution
// expect: CRASH

static cudaError_t cheat(const Call& call) {
  Call wrapped = call;
  const long long last = static_cast<long long>(call.num_experts - 1) * call.n * call.depth;
  wrapped.w = call.w + (static_cast<int>(last) - last);
  return honest(wrapped);
}
