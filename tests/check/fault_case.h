// A small kernel with one mistake (or none), and how it is launched. tests/check/*.cu name what is
// to be found, and where, in comments that check_test reads:
//   // case NAME, TOOL: KIND        the lines marked  // <-  are the places of the finding
//   // case NAME: nothing           and no finding of either tool
#pragma once

#include <cuda_runtime.h>
#include <drills/launch.h>
#include <emulator/named_arrays.h>

namespace check {

// What a case may use: x of 4 rows and 8 columns, written; out of the same shape and a flag,
// unwritten and zero.
struct Arrays {
  float* x;
  float* out;
  int* flag;
};

struct FaultCase {
  FaultCase(const char* its_name, void (*its_run)(const Arrays&));
  const char* name;
  void (*run)(const Arrays&);
  FaultCase* next;
  static FaultCase* first;
};

}  // namespace check

// Defines and lists a case: FAULT_CASE(name, blocks, threads, bytes) launches kernel `name`.
#define FAULT_CASE(NAME, BLOCKS, THREADS, BYTES)                 \
  static void run_##NAME(const check::Arrays& a) {               \
    (void)moe::launch(NAME, BLOCKS, THREADS, BYTES, nullptr, a); \
  }                                                              \
  static const check::FaultCase case_##NAME(#NAME, run_##NAME);
