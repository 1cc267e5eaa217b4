// check_faults NAME: runs one case of tests/check/*.cu under watch, and prints what was found.
#include <emulator/control.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "fault_case.h"

namespace check {

FaultCase* FaultCase::first = nullptr;

FaultCase::FaultCase(const char* its_name, void (*its_run)(const Arrays&))
    : name(its_name), run(its_run), next(first) {
  first = this;
}

namespace {

constexpr std::size_t kRed = 4096;  // bytes around an array, as the runners have them
constexpr std::size_t kRows = 4;
constexpr std::size_t kColumns = 8;

// In the middle of an allocation, filled with ones or zeros, and named.
template <class T>
T* make_array(const char* name, T value, std::size_t columns, std::size_t count, bool written) {
  unsigned char* allocation = nullptr;
  const std::size_t bytes = count * sizeof(T);
  if (cudaMalloc(&allocation, bytes + 2 * kRed) != cudaSuccess) return nullptr;
  const std::vector<T> values(count, value);
  (void)cudaMemcpy(allocation + kRed, values.data(), bytes, cudaMemcpyHostToDevice);
  emulator::name_array({allocation + kRed, bytes, name, sizeof(T), columns, 0, written});
  return reinterpret_cast<T*>(allocation + kRed);
}

int run(const char* name) {
  const FaultCase* found = FaultCase::first;
  while (found != nullptr && std::strcmp(found->name, name) != 0) found = found->next;
  if (found == nullptr) {
    std::fprintf(stderr, "no case is called %s\n", name);
    return 2;
  }
  emulator::options().report_fd = STDOUT_FILENO;
  const Arrays arrays = {make_array("x", 1.0f, kColumns, kRows * kColumns, true),
                         make_array("out", 0.0f, kColumns, kRows * kColumns, false),
                         make_array("flag", 0, 0, 2, true)};
  emulator::begin_watch();
  found->run(arrays);
  emulator::end_watch();
  std::printf("%s\n", emulator::fault());
  return 0;
}

}  // namespace
}  // namespace check

int main(int argc, char** argv) {
  return argc == 2 ? check::run(argv[1]) : 2;
}
