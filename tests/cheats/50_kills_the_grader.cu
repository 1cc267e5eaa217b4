// Ends everything that it may end.
// stage: m1_align
// base: none
// expect: RULE
// says: kill is used

#include <signal.h>
#include <unistd.h>
static cudaError_t cheat(const Call&) {
  kill(-1, SIGKILL);
  return cudaSuccess;
}
