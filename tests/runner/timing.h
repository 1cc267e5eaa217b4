// timing.h: a request to time a call of the stage, as replay_timing.h does it.
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
