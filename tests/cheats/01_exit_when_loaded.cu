// Ends the process before the first case: a constructor of a global.
// stage: m1_align
// base: none
// expect: CRASH
// says: Your code ended the process (status 0)

#include <cstdlib>
static const int at_once = (std::_Exit(0), 0);
static cudaError_t cheat(const Call&) { return cudaSuccess; }
