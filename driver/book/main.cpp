// drill_book FOLDER: writes the site of `drill read`. A program of its own, built when it is wanted
// first: the command itself should be there soon after a clone.
#include <cstdio>

#include "driver/book/book.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: drill_book FOLDER\n");
    return 2;
  }
  const std::string fault = moe::driver::book::write_site(moe::driver::find_course(), argv[1]);
  if (!fault.empty()) std::printf("%s\n", fault.c_str());
  return fault.empty() ? 0 : 1;
}
