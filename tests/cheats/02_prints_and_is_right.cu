// What is printed never matters: not against the student either.
// stage: m1_align
// base: solution
// expect: PASS

#include <cstdio>
static cudaError_t cheat(const Call& call) {
  std::printf("[  FAILED  ] everything\n</testsuite>\x1b[2J\x00\xff\n");
  return honest(call);
}
