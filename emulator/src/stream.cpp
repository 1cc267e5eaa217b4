#include "stream.h"

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "fault.h"

namespace emulator {

namespace {

// Leaked on purpose, as in control.cpp.
struct Streams {
  std::mutex mutex;
  std::vector<CUstream_st*> all;
};

Streams& streams() {
  static Streams* instance = new Streams;
  return *instance;
}

bool is_legacy(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy;
}

bool is_known(const Streams& s, cudaStream_t stream) {
  return is_legacy(stream) || stream == cudaStreamPerThread ||
         std::find(s.all.begin(), s.all.end(), stream) != s.all.end();
}

CUstream_st* object(cudaStream_t stream) {
  return is_legacy(stream) || stream == cudaStreamPerThread ? nullptr : stream;
}

bool captures(const CUstream_st& stream) {
  return stream.status != cudaStreamCaptureStatusNone;
}

void invalidate(CUstream_st& stream) {
  stream.status = cudaStreamCaptureStatusInvalidated;
  stream.nodes.clear();
}

// Stream 0 waits for every blocking stream, which one that captures can't do.
cudaError_t enter_legacy(Streams& s) {
  cudaError_t error = cudaSuccess;
  for (CUstream_st* stream : s.all) {
    if (!captures(*stream) || stream->non_blocking) continue;
    invalidate(*stream);
    error = cudaErrorStreamCaptureImplicit;
  }
  return error;
}

// Does this capture forbid unsafe calls of the calling thread?
bool forbids_unsafe_calls(const CUstream_st& stream) {
  if (!captures(stream) || stream.mode == cudaStreamCaptureModeRelaxed) return false;
  return stream.mode == cudaStreamCaptureModeGlobal ||
         stream.capturing_thread == std::this_thread::get_id();
}

}  // namespace

cudaError_t enter_stream(cudaStream_t stream, CallKind kind, GraphNodes** nodes) {
  *nodes = nullptr;
  const cudaError_t sticky = sticky_error();
  if (sticky != cudaSuccess) return sticky;
  Streams& s = streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!is_known(s, stream)) return cudaErrorInvalidResourceHandle;
  if (is_legacy(stream)) return enter_legacy(s);
  CUstream_st* known = object(stream);
  if (known == nullptr || !captures(*known)) return cudaSuccess;
  if (kind == CallKind::kUncapturable) {
    invalidate(*known);
    return cudaErrorStreamCaptureUnsupported;
  }
  if (known->status == cudaStreamCaptureStatusInvalidated) {
    return cudaErrorStreamCaptureInvalidated;
  }
  *nodes = &known->nodes;
  return cudaSuccess;
}

cudaError_t enter_device() {
  const cudaError_t sticky = sticky_error();
  if (sticky != cudaSuccess) return sticky;
  Streams& s = streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  cudaError_t error = cudaSuccess;
  for (CUstream_st* stream : s.all) {
    if (!forbids_unsafe_calls(*stream)) continue;
    invalidate(*stream);
    error = cudaErrorStreamCaptureUnsupported;
  }
  return error;
}

}  // namespace emulator

using emulator::CallKind;
using emulator::GraphNodes;
using emulator::report_error;

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  if (const cudaError_t sticky = emulator::sticky_error()) return sticky;
  if (stream == nullptr || flags > cudaStreamNonBlocking) {
    return report_error(cudaErrorInvalidValue);
  }
  auto* created = new CUstream_st;
  created->non_blocking = flags == cudaStreamNonBlocking;
  emulator::Streams& s = emulator::streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  s.all.push_back(created);
  *stream = created;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithPriority(stream, cudaStreamDefault, 0);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return report_error(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  emulator::Streams& s = emulator::streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  const auto found = std::find(s.all.begin(), s.all.end(), stream);
  if (found == s.all.end()) return report_error(cudaErrorInvalidResourceHandle);
  s.all.erase(found);
  delete stream;
  return emulator::sticky_error();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  GraphNodes* nodes = nullptr;
  return report_error(emulator::enter_stream(stream, CallKind::kUncapturable, &nodes));
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  GraphNodes* nodes = nullptr;
  return report_error(emulator::enter_stream(stream, CallKind::kUncapturable, &nodes));
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t sticky = emulator::sticky_error()) return sticky;
  emulator::Streams& s = emulator::streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!emulator::is_known(s, stream)) return report_error(cudaErrorInvalidResourceHandle);
  CUstream_st* known = emulator::object(stream);
  if (known == nullptr) return report_error(cudaErrorStreamCaptureUnsupported);
  if (emulator::captures(*known)) return report_error(cudaErrorIllegalState);
  known->status = cudaStreamCaptureStatusActive;
  known->mode = mode;
  known->capturing_thread = std::this_thread::get_id();
  known->nodes.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (graph == nullptr) return report_error(cudaErrorInvalidValue);
  *graph = nullptr;
  emulator::Streams& s = emulator::streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (!emulator::is_known(s, stream)) return report_error(cudaErrorInvalidResourceHandle);
  CUstream_st* known = emulator::object(stream);
  if (known == nullptr || !emulator::captures(*known)) return report_error(cudaErrorIllegalState);
  if (known->mode != cudaStreamCaptureModeRelaxed &&
      known->capturing_thread != std::this_thread::get_id()) {
    return report_error(cudaErrorStreamCaptureWrongThread);
  }
  const bool valid = known->status == cudaStreamCaptureStatusActive;
  known->status = cudaStreamCaptureStatusNone;
  if (!valid) return report_error(cudaErrorStreamCaptureInvalidated);
  if (const cudaError_t sticky = emulator::sticky_error()) return sticky;
  *graph = new CUgraph_st{std::move(known->nodes)};
  known->nodes.clear();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  emulator::Streams& s = emulator::streams();
  const std::lock_guard<std::mutex> lock(s.mutex);
  if (status == nullptr) return report_error(cudaErrorInvalidValue);
  if (!emulator::is_known(s, stream)) return report_error(cudaErrorInvalidResourceHandle);
  const CUstream_st* known = emulator::object(stream);
  *status = known == nullptr ? cudaStreamCaptureStatusNone : known->status;
  return emulator::sticky_error();
}
