// Never gets to main.
// stage: m1_align
// base: none
// expect: HANG
// says: No answer

static const int never = [] {
  for (volatile int i = 0;; i = i + 1) {
  }
  return 0;
}();
static cudaError_t cheat(const Call&) { return cudaSuccess; }
