// Makes every memory file empty that it can reach: their size is sealed.
// stage: m1_align
// base: none
// expect: WRONG

#include <unistd.h>
static cudaError_t cheat(const Call&) {
  for (int fd = 5; fd < 64; ++fd) (void)!ftruncate(fd, 0);
  return cudaSuccess;
}
