// timing.h: how a call is timed. One capture; each replay stands between two events, behind a write
// of 256 MB that empties L2 (and hides the time that the launch of the graph takes).
#pragma once

#include <cuda_runtime.h>

#include "protocol.h"

namespace moe::runner {

void time_call(const protocol::Request& request,
               const unsigned char* images,
               unsigned char* results,
               cudaStream_t stream,
               protocol::Reply& reply);

}  // namespace moe::runner
