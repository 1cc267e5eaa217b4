// Makes the code of the runner writable.
// stage: m1_align
// base: none
// expect: RULE
// says: mprotect is used

#include <sys/mman.h>
static cudaError_t cheat(const Call&) {
  mprotect(reinterpret_cast<void*>(reinterpret_cast<unsigned long>(&cheat) & ~4095UL), 4096, 7);
  return cudaSuccess;
}
