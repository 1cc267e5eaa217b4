// Works on a stream of its own: not in the captured graph.
// stage: m1_align
// base: solution
// expect: WRONG
// says: capture

static cudaError_t cheat(const Call& call) {
  static cudaStream_t own = nullptr;
  if (own == nullptr) cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
  Call elsewhere = call;
  elsewhere.stream = own;
  return honest(elsewhere);
}
