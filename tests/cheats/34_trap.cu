// A kernel that gives up.
// stage: m1_align
// base: none
// expect: CRASH

#include <cstdlib>
__global__ void gives_up() { abort(); }
static cudaError_t cheat(const Call& call) {
  return moe::launch(gives_up, dim3(1), dim3(1), 0, call.stream);
}
