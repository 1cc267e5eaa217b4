// Rounds the operands to fewer bits than bf16 has.
// stage: m2_grouped_gemm
// base: solution
// expect: WRONG

__global__ void coarser(__nv_bfloat16* values, size_t count) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i >= count) return;
  unsigned short* bits = reinterpret_cast<unsigned short*>(values) + i;
  if ((*bits & 0x7f80) != 0x7f80) *bits = static_cast<unsigned short>(*bits & 0xfff8);
}
static cudaError_t cheat(const Call& call) {
  const cudaError_t status = honest(call);
  if (status != cudaSuccess || call.out_elements() == 0) return status;
  const unsigned blocks = static_cast<unsigned>((call.out_elements() + 127) / 128);
  return moe::launch(coarser, dim3(blocks), dim3(128), 0, call.stream, call.out,
                     call.out_elements());
}
