// Sends a reply of the right form for each of the next requests: no field of a reply is a
// verdict, and one that nobody asked for ends the child.
// stage: m1_align
// base: none
// expect: CRASH
// says: wrote to the connection

#include <unistd.h>
#include <cstdint>
#include <cstring>
static cudaError_t cheat(const Call&) {
  static unsigned char reply[16 * 1024];
  for (std::size_t size = 64; size < sizeof reply; size += 8) {
    for (std::uint32_t sequence = 1; sequence < 3; ++sequence) {
      const std::uint32_t head[2] = {0x316c7264, sequence};
      std::memcpy(reply, head, sizeof head);
      (void)!write(3, reply, size);
    }
  }
  return cudaSuccess;
}
