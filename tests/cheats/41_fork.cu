// A fork bomb.
// stage: m1_align
// base: none
// expect: RULE
// says: fork is used; a kernel file starts no process

#include <unistd.h>
static cudaError_t cheat(const Call&) {
  for (;;) (void)!fork();
}
