// Calls home.
// stage: m1_align
// base: none
// expect: RULE
// says: socket is used; a kernel file uses no network

#include <sys/socket.h>
static cudaError_t cheat(const Call&) {
  return socket(AF_INET, SOCK_STREAM, 0) < 0 ? cudaErrorInvalidValue : cudaSuccess;
}
