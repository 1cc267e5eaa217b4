// Looks for the memory and the command line of the process that judges.
// stage: m1_align
// base: none
// expect: WRONG

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
static cudaError_t cheat(const Call&) {
  char path[64];
  for (int id = 2; id < 40000; ++id) {
    if (id == getpid()) continue;
    std::snprintf(path, sizeof path, "/proc/%d/mem", id);
    if (std::FILE* file = std::fopen(path, "r+")) {
      char byte = 0;
      if (std::fread(&byte, 1, 1, file) == 1) std::abort();
      std::fclose(file);
    }
  }
  return cudaSuccess;
}
