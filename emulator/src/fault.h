// The kinds of device faults and the error that sticks after one.
#pragma once

#include <emulator/place.h>
#include <emulator/runtime_api.h>

#include <string>

namespace emulator {

struct Fault {
  cudaError_t error = cudaSuccess;
  std::string text;  // "kind: sentence", then lines indented by two spaces
};

// The path without the directory of the repository (DRILL_ROOT, set by the build).
const char* short_path(const char* file);
// "file:line", with the short path.
std::string describe(Place place);
// "block (1,0,0)"
std::string describe_block(uint3 block);
// "block (1,0,0) thread (17,0,0)"
std::string describe_thread(uint3 block, uint3 thread);

// The first fault stays until clear_fault(); safe from any thread.
void record_fault(const Fault& fault);
// The text of a launch that was refused: replaced by the next launch, sticks to no call.
void record_refused_launch(const std::string& text);
void forget_refused_launch();

// The error that every call returns after a fault, else cudaSuccess.
cudaError_t sticky_error();

// Keeps the error for cudaGetLastError() and returns it; the sticky error if there is one.
cudaError_t report_error(cudaError_t error);
cudaError_t last_error(bool clear);

}  // namespace emulator
