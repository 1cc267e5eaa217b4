// The same through a function that no list names: the guard ends it.
// stage: m1_align
// base: none
// expect: RULE
// says: it starts more than

#include <wordexp.h>
static cudaError_t cheat(const Call&) {
  wordexp_t words;
  wordexp("$(i=0; while [ $i -lt 100 ]; do sleep 60 & i=$((i+1)); done; wait)", &words, 0);
  return cudaSuccess;
}
