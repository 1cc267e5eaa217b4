// Does the emulator do what a GPU does? Checks every primitive against the formulas of the PTX ISA
// and CUDA manuals, lane by lane. Compiled with nvcc it checks a GPU in the same way, which is how
// the formulas are confirmed. One line per primitive; the exit status is 1 if anything is wrong.
//   layout [PART]     all parts, each in a process of its own: no call works after a kernel that
//                     failed. One part alone runs in this process, for a debugger.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "layout.h"

namespace {

struct Part {
  const char* name;
  void (*check)();
  bool wants_hopper;  // exists on capability 9.0 alone, compiled for 90a
};

constexpr Part kParts[] = {
    {"matrices", layout::check_matrices, false}, {"warp", layout::check_warp, false},
    {"values", layout::check_values, false},     {"fp8", layout::check_fp8, false},
    {"captures", layout::check_captures, false}, {"bulk", layout::check_bulk, true},
    {"wgmma", layout::check_wgmma, true},        {"clusters", layout::check_clusters, true},
};

constexpr unsigned kSeconds = 120;  // then a part ends that hangs

bool can_run(const Part& part) {
  if (!part.wants_hopper) return true;
  int major = 0;
  int minor = 0;
  layout::require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
  layout::require(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "device");
  if (major == 9 && minor == 0) return true;
  std::printf("SKIP %s: capability %d.%d, not 9.0\n", part.name, major, minor);
  return false;
}

int run_here(const Part& part) {
  if (can_run(part)) part.check();
  return *layout::g_wrong == 0 ? 0 : 1;
}

// False where the part did not come to its end. The parent never calls CUDA, which does not survive
// a fork.
bool run_apart(const Part& part) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kSeconds);
    std::exit(run_here(part));
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    std::printf("%s: no process for it\n", part.name);
    return false;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) <= 1) return true;
  std::printf("%s: ended early, by %s %d\n", part.name, WIFSIGNALED(status) ? "signal" : "status",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  return false;
}

int run_all() {
  void* shared =
      mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 2;
  layout::g_wrong = static_cast<int*>(shared);
  std::string unfinished;
  for (const Part& part : kParts) {
    if (!run_apart(part)) unfinished += std::string(unfinished.empty() ? "" : ", ") + part.name;
  }
  std::printf("all: %d wrong%s%s\n", *layout::g_wrong,
              unfinished.empty() ? "" : ", ended early: ", unfinished.c_str());
  return *layout::g_wrong == 0 && unfinished.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return run_all();
  for (const Part& part : kParts) {
    if (argc == 2 && std::strcmp(part.name, argv[1]) == 0) return run_here(part);
  }
  std::fprintf(stderr, "layout [PART]    parts:");
  for (const Part& part : kParts) std::fprintf(stderr, " %s", part.name);
  std::fprintf(stderr, "\n");
  return 2;
}
