// Slow in its first calls, as if they were warm-up: what is counted is fixed by the tests.
// stage: m1_align
// base: solution
// expect: PASS

#include <unistd.h>
static cudaError_t cheat(const Call& call) {
  static int calls = 0;
  if (calls++ < 3) usleep(200'000);
  return honest(call);
}
