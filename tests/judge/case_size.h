// case_size.h: what is too large for a run under a checker, which takes a thousand times longer.
#pragma once

#include <cstddef>

#include "buffers.h"

namespace moe::judge {

void set_largest_case(size_t payload_bytes);
bool is_too_large(const Call& call);

}  // namespace moe::judge
