// Reads a file of the machine into an error message.
// stage: m1_align
// base: none
// expect: RULE
// says: files outside of the course cannot be included

#include "/etc/passwd"
static cudaError_t cheat(const Call&) { return cudaSuccess; }
