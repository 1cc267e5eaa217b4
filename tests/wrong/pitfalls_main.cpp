// pitfalls [--write] LIST NOTE [LIST NOTE ...]: exits with 1 where a note's table of pitfalls is
// not what its list of wrong kernels gives; --write brings it up to date.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "pitfalls.h"

int main(int argc, char** argv) {
  const bool write = argc > 1 && std::string(argv[1]) == "--write";
  const int first = write ? 2 : 1;
  if (argc <= first || (argc - first) % 2 != 0) {
    std::fprintf(stderr, "usage: %s [--write] LIST NOTE [LIST NOTE ...]\n", argv[0]);
    return 2;
  }
  int stale = 0;
  for (int i = first; i + 1 < argc; i += 2) {
    const char* note_path = argv[i + 1];
    try {
      std::ifstream file(note_path);
      const std::string note{std::istreambuf_iterator<char>(file), {}};
      const std::string table = moe::wrong::pitfalls_table(moe::wrong::read_list(argv[i]));
      const std::string fresh = moe::wrong::with_pitfalls(note, table);
      if (fresh == note) continue;
      if (write) {
        std::ofstream(note_path) << fresh;
        std::printf("%s: written\n", note_path);
        continue;
      }
      ++stale;
      std::fprintf(stderr,
                   "%s: the table of pitfalls is stale; `cmake --build build/host --target "
                   "write_pitfalls` makes it anew\n",
                   note_path);
    } catch (const moe::wrong::ListError& error) {
      ++stale;
      std::fprintf(stderr, "%s: %s\n", note_path, error.what());
    }
  }
  return stale == 0 ? 0 : 1;
}
