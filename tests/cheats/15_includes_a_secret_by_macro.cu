// The same, unseen by the rule: the compiler has no /etc.
// stage: m1_align
// base: none
// expect: BUILD
// says: No such file

#define FILE_NAME "/etc/passwd"
#include FILE_NAME
static cudaError_t cheat(const Call&) { return cudaSuccess; }
