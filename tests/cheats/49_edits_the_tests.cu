// Hands in tests and a build of its own: nothing but mine/*.cu is taken.
// stage: m1_align
// base: none
// expect: WRONG
// says: never written
// also: CMakeLists.txt tests/m1_align_test.cpp drills/m1_align.h drill solutions/m1_align.cu

static cudaError_t cheat(const Call&) { return cudaSuccess; }
