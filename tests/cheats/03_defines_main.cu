// Replaces main.
// stage: m1_align
// base: none
// expect: RULE
// says: must not define main

int main() { return 0; }
static cudaError_t cheat(const Call&) { return cudaSuccess; }
