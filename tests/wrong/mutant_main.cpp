// mutant LIST NAME SOLUTION OUTPUT: writes one wrong kernel.
#include <cstdio>
#include <fstream>
#include <iterator>

#include "mutant.h"

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s LIST NAME SOLUTION OUTPUT\n", argv[0]);
    return 2;
  }
  try {
    std::ifstream file(argv[3]);
    const std::string solution{std::istreambuf_iterator<char>(file), {}};
    for (const moe::wrong::Mutant& mutant : moe::wrong::read_list(argv[1])) {
      if (mutant.name != argv[2]) continue;
      std::ofstream output(argv[4]);
      output << moe::wrong::apply(mutant, solution) << std::flush;
      return output ? 0 : 70;
    }
    std::fprintf(stderr, "%s: no block is called %s\n", argv[1], argv[2]);
  } catch (const moe::wrong::ListError& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 70;
}
