// Prints for as long as it is let.
// stage: m1_align
// base: none
// expect: HANG

#include <cstdio>
static cudaError_t cheat(const Call&) {
  for (;;) std::puts("a line of a log that never ends, and nobody will ever want to read it all");
}
