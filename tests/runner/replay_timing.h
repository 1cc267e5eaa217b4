// replay_timing.h: how everything is timed here. One capture; each replay stands between two
// events, behind a write of 256 MB that empties L2 (and hides the time that the launch of the graph
// takes).
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace moe::runner {

// Captures what `call` puts on the stream; call it once before, as a capture loads no kernels.
// `call_status` is what the call returned, the result that of the capture. `look` sees the graph.
cudaError_t capture(const std::function<cudaError_t()>& call,
                    cudaStream_t stream,
                    cudaGraphExec_t* graph,
                    cudaError_t* call_status,
                    const std::function<void(cudaGraph_t)>& look = {});

// Times `count` replays in microseconds, after a few to warm up. Waits for the stream.
cudaError_t time_replays(cudaGraphExec_t graph, int count, cudaStream_t stream, float* times_us);

}  // namespace moe::runner
