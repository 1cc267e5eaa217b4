// The same without running what exit() would run.
// stage: m1_align
// base: none
// expect: CRASH
// says: Your code ended the process (status 0)

#include <cstdlib>
static cudaError_t cheat(const Call&) { std::quick_exit(0); }
