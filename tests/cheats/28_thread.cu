// Lets a thread finish the work later.
// stage: m1_align
// base: none
// expect: RULE
// says: a kernel file starts no thread

#include <thread>
static cudaError_t cheat(const Call&) {
  std::thread([] {}).detach();
  return cudaSuccess;
}
