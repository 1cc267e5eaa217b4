// Threads of one block write one place: which comes last is chance.
// stage: m1_align
// base: solution
// expect: WRONG

__global__ void last_wins(int32_t* place) { *place += threadIdx.x == 17 ? 1 : 0, *place = *place * 2 + static_cast<int>(threadIdx.x % 3); }
static cudaError_t cheat(const Call& call) {
  const cudaError_t status = honest(call);
  if (status != cudaSuccess) return status;
  return moe::launch(last_wins, dim3(1), dim3(64), 0, call.stream, call.num_tokens_post_padded);
}
