// Works in one call of fifteen and hopes that the others are only timed.
// stage: m1_align
// base: solution
// expect: WRONG
// quick: WRONG

static cudaError_t cheat(const Call& call) {
  static int calls = 0;
  return calls++ % 15 == 0 ? honest(call) : cudaSuccess;
}
