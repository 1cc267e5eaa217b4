// Does the emulator do what a GPU does? Checks every primitive against the formulas of the PTX ISA
// and CUDA manuals, lane by lane. Compiled with nvcc it checks a GPU in the same way, which is how
// the formulas are confirmed. One line per primitive; the exit status is 1 if anything is wrong.
#include "layout.h"

int main() {
  layout::check_matrices();
  layout::check_warp();
  layout::check_values();
  layout::check_fp8();
  layout::check_captures();
  std::printf("all: %d wrong\n", layout::g_wrong);
  return layout::g_wrong == 0 ? 0 : 1;
}
