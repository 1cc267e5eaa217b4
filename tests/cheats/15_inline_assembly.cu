// A system call by hand.
// stage: m1_align
// base: none
// expect: RULE
// says: inline assembly is not allowed

static cudaError_t cheat(const Call&) {
  __asm__ volatile("nop");
  return cudaSuccess;
}
