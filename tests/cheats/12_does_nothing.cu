// Hopes that old memory still holds an answer.
// stage: m1_align
// base: none
// expect: WRONG
// says: never written

static cudaError_t cheat(const Call&) { return cudaSuccess; }
