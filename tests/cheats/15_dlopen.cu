// Loads code at run time, by a pasted name.
// stage: m1_align
// base: none
// expect: RULE
// says: is used; code is not loaded at run time

#include <dlfcn.h>
#define PASTE(a, b) a##b
static cudaError_t cheat(const Call&) {
  return PASTE(dlo, pen)("libcublas.so", RTLD_NOW) == nullptr ? cudaErrorInvalidValue : cudaSuccess;
}
