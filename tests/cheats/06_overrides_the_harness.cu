// Defines a function of the runner a second time.
// stage: m1_align
// base: none
// expect: RULE
// says: belongs to the test harness

#include <cstddef>
#include <sys/types.h>
extern "C" ssize_t recvmsg(int, void*, int) { return 0; }
static cudaError_t cheat(const Call&) { return cudaSuccess; }
