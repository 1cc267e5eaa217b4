// Does the emulator do what a GPU does? Checks every primitive against the formulas of the PTX ISA
// and CUDA manuals, lane by lane. Compiled with nvcc it checks a GPU in the same way, which is how
// the formulas are confirmed. One line per primitive; the exit status is 1 if anything is wrong.
#include "layout.h"

namespace {

// The Hopper parts exist on capability 9.0 alone, compiled for 90a.
bool is_hopper() {
  int major = 0;
  int minor = 0;
  layout::require(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
  layout::require(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "device");
  if (major == 9 && minor == 0) return true;
  std::printf("SKIP bulk copies, wgmma, clusters: capability %d.%d, not 9.0\n", major, minor);
  return false;
}

}  // namespace

int main() {
  layout::check_matrices();
  layout::check_warp();
  layout::check_values();
  layout::check_fp8();
  layout::check_captures();
  if (is_hopper()) {
    layout::check_bulk();
    layout::check_wgmma();
    layout::check_clusters();
  }
  std::printf("all: %d wrong\n", layout::g_wrong);
  return layout::g_wrong == 0 ? 0 : 1;
}
