// What calls answer while a stream captures.
#include <cuda_runtime.h>

#include "layout.h"

namespace layout {

namespace {

// All but the host copies was confirmed on an H200 (2026-11-29, CUDA 13).

__global__ void nothing_kernel() {}

struct CaptureCalls {
  cudaStream_t stream = nullptr;
  cudaEvent_t event = nullptr;
  unsigned char* device = nullptr;
  unsigned char host[64] = {};
  void* fresh = nullptr;
};

struct CaptureCase {
  const char* name;
  cudaError_t (*call)(CaptureCalls&);
  cudaError_t error;
};

// A GPU records copies to and from the host, and reads the host at the replay; the emulator refuses
// what the drills forbid anyway.
#ifdef __CUDACC__
constexpr cudaError_t kHostCopy = cudaSuccess;
#else
constexpr cudaError_t kHostCopy = cudaErrorStreamCaptureUnsupported;
#endif

const CaptureCase kCaptureCases[] = {
    {"launch", [](CaptureCalls& c) { return moe::launch(nothing_kernel, 1, 1, 0, c.stream); },
     cudaSuccess},
    {"cudaMemsetAsync", [](CaptureCalls& c) { return cudaMemsetAsync(c.device, 0, 4, c.stream); },
     cudaSuccess},
    {"cudaMemcpyAsync device to device",
     [](CaptureCalls& c) {
       return cudaMemcpyAsync(c.device, c.device + 32, 4, cudaMemcpyDeviceToDevice, c.stream);
     },
     cudaSuccess},
    {"cudaMalloc", [](CaptureCalls& c) { return cudaMalloc(&c.fresh, 4); },
     cudaErrorStreamCaptureUnsupported},
    {"cudaFree", [](CaptureCalls& c) { return cudaFree(c.device); },
     cudaErrorStreamCaptureUnsupported},
    {"cudaStreamSynchronize", [](CaptureCalls& c) { return cudaStreamSynchronize(c.stream); },
     cudaErrorStreamCaptureUnsupported},
    {"cudaStreamQuery", [](CaptureCalls& c) { return cudaStreamQuery(c.stream); },
     cudaErrorStreamCaptureUnsupported},
    {"cudaDeviceSynchronize", [](CaptureCalls&) { return cudaDeviceSynchronize(); },
     cudaErrorStreamCaptureUnsupported},
    {"cudaEventQuery of an event recorded before",
     [](CaptureCalls& c) { return cudaEventQuery(c.event); }, cudaErrorStreamCaptureUnsupported},
    {"cudaMemcpyAsync to pageable host memory",
     [](CaptureCalls& c) {
       return cudaMemcpyAsync(c.host, c.device, 4, cudaMemcpyDeviceToHost, c.stream);
     },
     kHostCopy},
    {"cudaMemcpyAsync from pageable host memory",
     [](CaptureCalls& c) {
       return cudaMemcpyAsync(c.device, c.host, 4, cudaMemcpyHostToDevice, c.stream);
     },
     kHostCopy},
    {"cudaMemcpy to the host",
     [](CaptureCalls& c) { return cudaMemcpy(c.host, c.device, 4, cudaMemcpyDeviceToHost); },
     cudaErrorStreamCaptureImplicit},
    {"cudaMemset on stream 0", [](CaptureCalls& c) { return cudaMemset(c.device, 0, 4); },
     cudaErrorStreamCaptureImplicit},
    {"launch on stream 0",
     [](CaptureCalls&) { return moe::launch(nothing_kernel, 1, 1, 0, nullptr); },
     cudaErrorStreamCaptureImplicit},
    {"cudaStreamSynchronize of stream 0",
     [](CaptureCalls&) { return cudaStreamSynchronize(nullptr); }, cudaErrorStreamCaptureImplicit},
    {"cudaStreamBeginCapture again",
     [](CaptureCalls& c) { return cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeGlobal); },
     cudaErrorIllegalState},
};

// What one call answers during a capture, and whether the capture survives it.
void check_capture(CaptureCalls& calls, const CaptureCase& c) {
  require(cudaStreamBeginCapture(calls.stream, cudaStreamCaptureModeGlobal), "begin capture");
  const cudaError_t error = c.call(calls);
  cudaGraph_t graph = nullptr;
  const cudaError_t end = cudaStreamEndCapture(calls.stream, &graph);
  const bool survives = c.error == cudaSuccess || c.error == cudaErrorIllegalState;
  const cudaError_t want_end = survives ? cudaSuccess : cudaErrorStreamCaptureInvalidated;
  const bool right = error == c.error && end == want_end && (graph != nullptr) == survives;
  std::printf("capture, %s: %d wrong (%s, then %s%s)\n", c.name, right ? 0 : 1,
              cudaGetErrorName(error), cudaGetErrorName(end), graph != nullptr ? ", a graph" : "");
  *g_wrong += right ? 0 : 1;
  if (graph != nullptr) (void)cudaGraphDestroy(graph);
  (void)cudaGetLastError();
}

}  // namespace

void check_captures() {
  CaptureCalls calls;
  require(cudaStreamCreate(&calls.stream), "cudaStreamCreate");
  require(cudaEventCreate(&calls.event), "cudaEventCreate");
  require(cudaEventRecord(calls.event, calls.stream), "cudaEventRecord");
  require(cudaMalloc(&calls.device, 64), "cudaMalloc");
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  for (const CaptureCase& c : kCaptureCases) check_capture(calls, c);
  require(cudaFree(calls.device), "cudaFree");
  require(cudaEventDestroy(calls.event), "cudaEventDestroy");
  require(cudaStreamDestroy(calls.stream), "cudaStreamDestroy");
}

}  // namespace layout
