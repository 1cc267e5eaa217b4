// Ends the process before the check, with the status of success.
// stage: m1_align
// base: none
// expect: CRASH
// says: Your code ended the process (status 0)

#include <cstdlib>
static cudaError_t cheat(const Call&) { std::exit(0); }
