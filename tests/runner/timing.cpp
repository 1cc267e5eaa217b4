#include "timing.h"

#include "backend.h"
#include "device_buffers.h"
#include "replay_timing.h"
#include "stage_calls.h"

namespace moe::runner {
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

  cudaGraphExec_t graph = nullptr;
  cudaError_t call_status = cudaSuccess;
  reply.capture_status = capture([&] { return call_stage(call); }, stream, &graph, &call_status,
                                 [&](cudaGraph_t captured) { note_kernels(captured, reply); });
  reply.call_status = call_status;
  if (reply.capture_status != cudaSuccess) return;
  reply.device_status =
      time_replays(graph, static_cast<int>(request.num_times), stream, reply.times_us);
  (void)cudaGraphExecDestroy(graph);
  if (reply.device_status == cudaSuccess && !buffers.download_samples(results)) {
    reply.device_status = cudaErrorUnknown;
  }
}

}  // namespace moe::runner
