// Code in a constructor runs behind the same wall; being right is enough.
// stage: m1_align
// base: solution
// expect: PASS

#include <cstdio>
static const int greeted = std::puts("hello from a constructor");
static cudaError_t cheat(const Call& call) { return honest(call); }
