// Reads the row of a flat id where there are rows of tokens only: plausible data on a bad day.
// stage: m2_grouped_gemm
// base: solution
// expect: WRONG
// gpu: CRASH
// quick: WRONG
// code: M2-FLATROW

static cudaError_t cheat(const Call& call) {
  Call flat = call;
  flat.rows = moe::Rows::kSlots;
  return honest(flat);
}
