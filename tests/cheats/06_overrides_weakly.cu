// The same as a weak symbol, which the linker would prefer to an archive's.
// stage: m1_align
// base: none
// expect: RULE
// says: belongs to the test harness

namespace emulator {
__attribute__((weak)) const char* fault() { return "everything is right"; }
}  // namespace emulator
static cudaError_t cheat(const Call&) { return cudaSuccess; }
