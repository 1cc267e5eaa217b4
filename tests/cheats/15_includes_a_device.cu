// Includes a file that never ends, by a macro.
// stage: m1_align
// base: none
// expect: BUILD

#define FILE_NAME "/dev/zero"
#include FILE_NAME
static cudaError_t cheat(const Call&) { return cudaSuccess; }
