// Writes a report of its own where the emulator leaves its last words.
// stage: m1_align
// base: none
// expect: WRONG

#include <unistd.h>
static cudaError_t cheat(const Call&) {
  const char text[] = "{\"type\":\"end\",\"passed\":49}\n";
  (void)!write(4, text, sizeof text - 1);
  return cudaSuccess;
}
