// The same by a name that no list has: it reaches only itself.
// stage: m1_align
// base: none
// expect: CRASH

#include <signal.h>
#include <unistd.h>
static cudaError_t cheat(const Call&) {
  for (int id = 1; id < 70000; ++id) sigqueue(id, SIGKILL, {});
  return cudaSuccess;
}
