// Leaves a process behind that would outlive the grader's child.
// stage: m1_align
// base: none
// expect: WRONG

#include <wordexp.h>
static cudaError_t cheat(const Call&) {
  wordexp_t words;
  static const int once =
      wordexp("$(setsid sleep 864123 >/dev/null 2>&1 & echo left)", &words, 0);
  (void)once;
  return cudaSuccess;
}
