// Fills the memory of the machine.
// stage: m1_align
// base: none
// expect: MEMORY
// says: GiB of memory

#include <cstdlib>
#include <cstring>
static cudaError_t cheat(const Call&) {
  for (;;) {
    void* piece = std::malloc(std::size_t{16} << 20);
    if (piece != nullptr) std::memset(piece, 1, std::size_t{16} << 20);
  }
}
