// Slow but right: no point is lost where no time is measured.
// stage: m1_align
// base: solution
// expect: PASS

#include <unistd.h>
static cudaError_t cheat(const Call& call) {
  usleep(2'000);
  return honest(call);
}
