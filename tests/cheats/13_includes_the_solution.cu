// Includes our solution.
// stage: m1_align
// base: none
// expect: RULE
// says: solutions/ is not available while grading

#include <solutions/m1_align.cu>
static cudaError_t cheat(const Call&) { return cudaSuccess; }
