#include "observer.h"

#include <emulator/language.h>
#include <link.h>

#include <algorithm>

#include "block.h"

namespace emulator {

#ifdef EMULATOR_TRACED
Observer* g_observer = nullptr;
#endif

namespace {

std::vector<DeviceRange>& ranges() {
  static auto* instance = new std::vector<DeviceRange>;
  return *instance;
}

// The last one found: most accesses go where the one before went.
const DeviceRange* g_last_range = nullptr;

template <class T>
bool lies_in(const void* address, const T& variable) {
  const auto* place = static_cast<const char*>(address);
  const auto* low = reinterpret_cast<const char*>(&variable);
  return place >= low && place < low + sizeof variable;
}

// The emulator's own thread-locals, which stand among the __shared__ variables.
bool is_built_in(const void* address) {
  return lies_in(address, threadIdx) || lies_in(address, blockIdx) || lies_in(address, blockDim) ||
         lies_in(address, gridDim) || lies_in(address, t_block);
}

}  // namespace

void observe([[maybe_unused]] Observer* observer) {
#ifdef EMULATOR_TRACED
  g_observer = observer;
#endif
}

void take_stock_of_memory() {
  ranges() = device_allocations();
  g_last_range = nullptr;
}

const DeviceRange* device_range(const void* address) {
  const auto place = reinterpret_cast<std::uintptr_t>(address);
  if (g_last_range != nullptr && place - g_last_range->low < g_last_range->bytes) {
    return g_last_range;
  }
  const std::vector<DeviceRange>& all = ranges();
  const auto after =
      std::upper_bound(all.begin(), all.end(), place,
                       [](std::uintptr_t p, const DeviceRange& range) { return p < range.low; });
  if (after == all.begin()) return nullptr;
  const DeviceRange& range = *std::prev(after);
  if (place - range.low >= range.bytes) return nullptr;
  g_last_range = &range;
  return &range;
}

void tell_access(Access access) {
  Observer* const watching = observer();
  if (watching == nullptr) return;
  Block* const block = t_block;
  if (block == nullptr) return;
  if (block->shared_offset(access.address) < kSharedWindowBytes) {
    if (is_built_in(access.address)) return;
    access.space = Space::kShared;
  } else if (device_range(access.address) != nullptr) {
    access.space = Space::kGlobal;
  } else {
    return;
  }
  watching->access(*block, block->current().linear, access);
}

std::uintptr_t program_offset(std::uintptr_t pc) {
  static std::uintptr_t load_address = 0;
  static const int looked_up = dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* result) {
        *static_cast<std::uintptr_t*>(result) = object->dlpi_addr;
        return 1;  // the program comes first
      },
      &load_address);
  (void)looked_up;
  return pc - load_address;
}

}  // namespace emulator
