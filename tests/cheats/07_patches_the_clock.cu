// Replaces the clock.
// stage: m1_align
// base: none
// expect: RULE
// says: symbol clock_gettime belongs to the test harness

#include <ctime>
extern "C" int clock_gettime(clockid_t, timespec* now) noexcept {
  *now = {};
  return 0;
}
static cudaError_t cheat(const Call&) { return cudaSuccess; }
