// The host never comes back.
// stage: m1_align
// base: none
// expect: HANG
// says: No answer

#include <unistd.h>
static cudaError_t cheat(const Call&) {
  for (;;) pause();
}
