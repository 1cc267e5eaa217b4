// Writes and deletes files all over the machine: there are none to be found.
// stage: m1_align
// base: solution
// expect: PASS

#include <cstdio>
#include <cstdlib>
static cudaError_t cheat(const Call& call) {
  const char* const paths[] = {"/usr/cheat", "/etc/cheat", "/cheat", "/dev/cheat", "/proc/cheat"};
  for (const char* path : paths) {
    if (std::FILE* file = std::fopen(path, "w")) {
      std::fclose(file);
      std::abort();
    }
  }
  std::remove("/usr/bin/ls");
  if (std::FILE* file = std::fopen("/etc/passwd", "r")) std::abort();
  return honest(call);
}
