// Blames another file.
// stage: m1_align
// base: solution
// expect: RULE
// says: line directives are not allowed

#line 1 "/usr/include/stdio.h"
static cudaError_t cheat(const Call& call) { return honest(call); }
