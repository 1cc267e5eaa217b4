// An object file that would fill the disk.
// stage: m1_align
// base: none
// expect: BUILD

static char huge[std::size_t{3} << 30] = {1};
static cudaError_t cheat(const Call& call) {
  return huge[call.num_tokens] == 0 ? cudaErrorInvalidValue : cudaSuccess;
}
