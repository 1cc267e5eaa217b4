// Uses a library.
// stage: m2_grouped_gemm
// base: none
// expect: RULE
// says: cublasGemmEx is used; this stage asks for your own kernel

extern "C" int cublasGemmEx(void*);
static cudaError_t cheat(const Call&) {
  return cublasGemmEx(nullptr) == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
