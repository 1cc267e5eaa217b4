// Events: moments of the host's clock, since work is done when its call returns.
#include <chrono>

#include "fault.h"
#include "stream.h"

using emulator::CallKind;
using emulator::GraphNodes;
using emulator::report_error;

struct CUevent_st {
  enum class State { kNew, kRecorded, kCaptured };

  State state = State::kNew;
  bool timed = true;
  std::chrono::steady_clock::time_point time;
};

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if (const cudaError_t sticky = emulator::sticky_error()) return sticky;
  if (event == nullptr) return report_error(cudaErrorInvalidValue);
  *event = new CUevent_st;
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return report_error(cudaErrorInvalidResourceHandle);
  delete event;
  return emulator::sticky_error();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event == nullptr) return report_error(cudaErrorInvalidResourceHandle);
  GraphNodes* nodes = nullptr;
  const cudaError_t error = emulator::enter_stream(stream, CallKind::kWork, &nodes);
  if (error != cudaSuccess) return report_error(error);
  event->state = nodes != nullptr ? CUevent_st::State::kCaptured : CUevent_st::State::kRecorded;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event == nullptr) return report_error(cudaErrorInvalidResourceHandle);
  if (event->state == CUevent_st::State::kCaptured) return report_error(cudaErrorCapturedEvent);
  return report_error(emulator::enter_device());
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaEventQuery(event);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (milliseconds == nullptr) return report_error(cudaErrorInvalidValue);
  for (const CUevent_st* event : {start, end}) {
    if (event == nullptr || !event->timed || event->state != CUevent_st::State::kRecorded) {
      return report_error(cudaErrorInvalidResourceHandle);
    }
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return report_error(cudaSuccess);
}

// Everything recorded in the event is done already. A capture that forks to a second stream by an
// event is not offered.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event == nullptr) return report_error(cudaErrorInvalidResourceHandle);
  GraphNodes* nodes = nullptr;
  const cudaError_t error = emulator::enter_stream(stream, CallKind::kWork, &nodes);
  if (error != cudaSuccess) return report_error(error);
  const bool captured = event->state == CUevent_st::State::kCaptured;
  if (captured != (nodes != nullptr) && event->state != CUevent_st::State::kNew) {
    return report_error(cudaErrorStreamCaptureIsolation);
  }
  return cudaSuccess;
}
