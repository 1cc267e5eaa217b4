#include "timing.h"

#include <vector>

#include "backend.h"
#include "device_buffers.h"
#include "stage_calls.h"

namespace moe::runner {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr int kWarmUps = 3;

struct Events {
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
};

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

}  // namespace

void time_call(const protocol::Request& request,
               const unsigned char* images,
               unsigned char* results,
               cudaStream_t stream,
               protocol::Reply& reply) {
  DeviceBuffers buffers(request);
  const StageCall call = {request.operation, request.integers, buffers.pointers(), stream};
  buffers.upload(images);
  clear_todos();
  reply.call_status = call_stage(call);  // loads the kernels, which a capture would not
  reply.device_status = cudaStreamSynchronize(stream);
  note_todos(reply);
  if (reply.call_status != cudaSuccess || reply.device_status != cudaSuccess) return;
  buffers.upload(images);  // outputs are poison again: what is judged is what was timed

  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "begin capture");
  reply.call_status = call_stage(call);
  reply.capture_status = cudaStreamEndCapture(stream, &graph);
  if (reply.capture_status == cudaSuccess) {
    reply.capture_status = cudaGraphInstantiate(&executable, graph, 0);
  }
  if (reply.capture_status != cudaSuccess) return;
  note_kernels(graph, reply);
  reply.device_status =
      time_replays(executable, static_cast<int>(request.num_times), stream, reply.times_us);
  (void)cudaGraphExecDestroy(executable);
  (void)cudaGraphDestroy(graph);
  if (reply.device_status == cudaSuccess && !buffers.download_samples(results)) {
    reply.device_status = cudaErrorUnknown;
  }
}

}  // namespace moe::runner
