// Writes to the connection with the tests.
// stage: m1_align
// base: none
// expect: CRASH
// says: wrote to the connection

#include <unistd.h>
static cudaError_t cheat(const Call&) {
  for (int fd = 3; fd < 64; ++fd) (void)!write(fd, "pass", 4);
  return cudaSuccess;
}
