#include "moe_layer.h"

#include <drills/m4_group_m.h>

#include <climits>

namespace moe::library {
namespace {

// Fastest first; the last line serves everything. A faster stage is one more line here.
constexpr Layer kLayers[] = {
    {"m4", INT_MAX, nullptr, &solution::m4::moe_layer_workspace_bytes,
     &solution::m4::refuse_moe_layer, &solution::m4::moe_layer},
};

bool serves(const Layer& layer, const LayerSizes& sizes) {
  if (sizes.num_tokens > layer.max_num_tokens) return false;
  return layer.refuse_device == nullptr || layer.refuse_device() == nullptr;
}

}  // namespace

const Layer& layer_for(const LayerSizes& sizes) {
  const Layer* found = kLayers;
  while (found + 1 != kLayers + sizeof kLayers / sizeof kLayers[0] && !serves(*found, sizes)) {
    ++found;
  }
  return *found;
}

}  // namespace moe::library
