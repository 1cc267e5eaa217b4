// Streams, and what they record while they capture.
#pragma once

#include <emulator/kernel_call.h>
#include <emulator/runtime_api.h>

#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "device.h"

namespace emulator {

// One recorded operation, with copies of its arguments.
struct GraphNode {
  enum class Kind { kKernel, kCopy, kFill };

  Kind kind = Kind::kKernel;
  std::unique_ptr<KernelCall> call;
  Grid grid;
  void* to = nullptr;
  const void* from = nullptr;
  int value = 0;
  std::size_t bytes = 0;
};

using GraphNodes = std::vector<std::shared_ptr<const GraphNode>>;

// What a call means for the captures under way.
enum class CallKind {
  kWork,         // a launch, a memset, a device copy: recorded by a stream that captures
  kUncapturable  // allocates, waits, asks, or copies to or from the host
};

// May the call be made on this stream? Where a capture forbids it, the capture is invalidated. If
// the stream captures, `nodes` becomes its list, else null.
cudaError_t enter_stream(cudaStream_t stream, CallKind kind, GraphNodes** nodes);

// The same for a call that names no stream and is unsafe while anybody captures.
cudaError_t enter_device();

// Runs the recorded operation now.
cudaError_t run_node(const GraphNode& node);

}  // namespace emulator

struct CUstream_st {
  bool non_blocking = false;  // it does not wait for stream 0
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id capturing_thread;
  emulator::GraphNodes nodes;
};

struct CUgraph_st {
  emulator::GraphNodes nodes;
};

struct CUgraphExec_st {
  emulator::GraphNodes nodes;
};
