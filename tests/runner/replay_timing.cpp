#include "replay_timing.h"

#include <vector>

#include "device_buffers.h"

namespace moe::runner {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr int kWarmUps = 3;

struct Events {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

}  // namespace

cudaError_t capture(const std::function<cudaError_t()>& call,
                    cudaStream_t stream,
                    cudaGraphExec_t* graph,
                    cudaError_t* call_status,
                    const std::function<void(cudaGraph_t)>& look) {
  cudaGraph_t captured = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  *call_status = call();
  cudaError_t status = cudaStreamEndCapture(stream, &captured);
  if (status == cudaSuccess) status = cudaGraphInstantiate(graph, captured, 0);
  if (status == cudaSuccess && look) look(captured);
  if (captured != nullptr) (void)cudaGraphDestroy(captured);
  return status;
}

cudaError_t time_replays(cudaGraphExec_t graph, int count, cudaStream_t stream, float* times_us) {
  void* flush = nullptr;
  check(cudaMalloc(&flush, kFlushBytes), "cudaMalloc");
  std::vector<Events> events(static_cast<size_t>(count));
  for (Events& pair : events) {
    check(cudaEventCreate(&pair.begin), "cudaEventCreate");
    check(cudaEventCreate(&pair.end), "cudaEventCreate");
  }
  for (int i = 0; i < kWarmUps; ++i) (void)cudaGraphLaunch(graph, stream);
  for (int i = 0; i < count; ++i) {
    const Events& pair = events[static_cast<size_t>(i)];
    (void)cudaMemsetAsync(flush, i, kFlushBytes, stream);
    (void)cudaEventRecord(pair.begin, stream);
    (void)cudaGraphLaunch(graph, stream);
    (void)cudaEventRecord(pair.end, stream);
  }
  const cudaError_t status = cudaStreamSynchronize(stream);
  for (int i = 0; i < count; ++i) {
    const Events& pair = events[static_cast<size_t>(i)];
    float milliseconds = 0.0f;
    if (status == cudaSuccess) (void)cudaEventElapsedTime(&milliseconds, pair.begin, pair.end);
    times_us[i] = 1000.0f * milliseconds;
    (void)cudaEventDestroy(pair.begin);
    (void)cudaEventDestroy(pair.end);
  }
  (void)cudaFree(flush);
  return status;
}

}  // namespace moe::runner
