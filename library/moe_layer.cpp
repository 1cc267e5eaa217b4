#include "moe_layer.h"

#include <drills/capability.h>
#include <drills/m4_group_m.h>
#include <drills/m8_persistent.h>
#include <drills/m9_decode.h>

#include <climits>

namespace moe::library {
namespace {

// The first line that serves a call is taken; the last serves everything. A faster stage is one
// more line here. m9 ends where it must, at 64 tokens; there m8 is as fast on an H200: with E 128,
// K 8, H 2048, I 768 m9 takes 312 us for 64 tokens, m8 309 for 65.
constexpr Layer kLayers[] = {
    {"m9", solution::m9::kMaxTokens, nullptr, &solution::m9::moe_layer_workspace_bytes,
     &solution::m9::refuse_moe_layer, &solution::m9::moe_layer},
    {"m8", INT_MAX, &refuse_unless_capability_9_0, &solution::m8::moe_layer_workspace_bytes,
     &solution::m8::refuse_moe_layer, &solution::m8::moe_layer},
    {"m4", INT_MAX, nullptr, &solution::m4::moe_layer_workspace_bytes,
     &solution::m4::refuse_moe_layer, &solution::m4::moe_layer},
};

bool serves(const Layer& layer, const LayerSizes& sizes) {
  if (sizes.num_tokens > layer.max_num_tokens) return false;
  return layer.refuse_device == nullptr || layer.refuse_device() == nullptr;
}

}  // namespace

// A layer of FP8 (moe_layer_fp8) has other arguments: it gets a table of its own beside this one.
const Layer& layer_for(const LayerSizes& sizes) {
  const Layer* found = kLayers;
  while (found + 1 != kLayers + sizeof kLayers / sizeof kLayers[0] && !serves(*found, sizes)) {
    ++found;
  }
  return *found;
}

}  // namespace moe::library
