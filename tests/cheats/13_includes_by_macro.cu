// The same with the name in a macro, which the rule about the text does not see.
// stage: m1_align
// base: none
// expect: BUILD
// says: solutions

#define OUR_ANSWER <solutions/m1_align.cu>
#include OUR_ANSWER
static cudaError_t cheat(const Call&) { return cudaSuccess; }
