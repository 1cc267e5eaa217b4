// skeleton SOLUTION OUTPUT STAGE_ID: writes one skeleton. The build trees use it to compile the
// blank form of a stage whatever a learner has done to mine/.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "driver/skeleton.h"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SOLUTION OUTPUT STAGE_ID\n", argv[0]);
    return 2;
  }
  std::ifstream solution(argv[1], std::ios::binary);
  if (!solution) {
    std::fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 70;
  }
  const std::string text{std::istreambuf_iterator<char>(solution), {}};
  try {
    const std::string skeleton = moe::driver::make_skeleton(text, argv[1], argv[3]);
    std::ofstream output(argv[2], std::ios::binary);
    output << skeleton << std::flush;
    if (output) return 0;
    std::fprintf(stderr, "%s: cannot be written\n", argv[2]);
  } catch (const moe::driver::MarkerError& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 70;
}
