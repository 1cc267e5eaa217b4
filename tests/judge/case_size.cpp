#include "case_size.h"

#include <limits>

namespace moe::judge {
namespace {

size_t g_largest = std::numeric_limits<size_t>::max();

}  // namespace

void set_largest_case(size_t payload_bytes) {
  g_largest = payload_bytes;
}

bool is_too_large(const Call& call) {
  size_t bytes = 0;
  for (const HostBuffer& buffer : call.buffers) bytes += buffer.payload.size();
  return bytes > g_largest;
}

}  // namespace moe::judge
