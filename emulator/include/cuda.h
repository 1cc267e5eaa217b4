// Stands in for the CUDA driver's header: the one type of it that the drills name.
#pragma once

#include <cstdint>

// Made by make_tensor_map() (drills/hopper.h); what is in it is nobody's business.
struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};
