#include "named_arrays.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "context.h"

namespace emulator {

namespace {

constexpr std::size_t kMaxArrays = 32;
constexpr std::size_t kNameBytes = 32;
constexpr std::int64_t kNear = std::int64_t{16} << 20;  // how far away a wild address may be

struct Entry {
  NamedArray array;
  AllocationRange allocation;
  char name[kNameBytes];

  std::int64_t offset_of(const void* address) const {
    return static_cast<const char*>(address) - static_cast<const char*>(array.begin);
  }
  // 0 inside.
  std::int64_t distance_to(const void* address) const {
    const std::int64_t offset = offset_of(address);
    const auto bytes = static_cast<std::int64_t>(array.bytes);
    return offset < 0 ? -offset : offset >= bytes ? offset - bytes + 1 : 0;
  }
  bool in_allocation(const void* address) const {
    const auto place = reinterpret_cast<std::uintptr_t>(address);
    return place >= allocation.low && place - allocation.low < allocation.bytes;
  }
};

std::array<Entry, kMaxArrays> g_entries;
std::size_t g_count = 0;

void poison_around(const Entry& entry) {
  if (entry.allocation.bytes == 0) return;
  const auto* low = reinterpret_cast<const char*>(entry.allocation.low);
  const auto* begin = static_cast<const char*>(entry.array.begin);
  const char* end = begin + entry.array.bytes;
  asan_poison(low, static_cast<std::size_t>(begin - low));
  asan_poison(end, static_cast<std::size_t>(low + entry.allocation.bytes - end));
}

const Entry* nearest_entry(const void* address) {
  const Entry* best = nullptr;
  for (std::size_t i = 0; i < g_count; ++i) {
    const Entry& entry = g_entries[i];
    if (entry.in_allocation(address)) return &entry;
    const std::int64_t distance = entry.distance_to(address);
    if (distance <= kNear && (best == nullptr || distance < best->distance_to(address))) {
      best = &entry;
    }
  }
  return best;
}

// Division towards minus infinity: the row before the first is row -1.
std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

// Counts of what is at hand are told where the number is outside of them.
void add_index(
    char* text, std::size_t size, const char* what, std::int64_t index, std::int64_t of) {
  const std::size_t used = std::strlen(text);
  if (index < 0 || index >= of) {
    std::snprintf(text + used, size - used, "[%s%lld of %lld]", what, static_cast<long long>(index),
                  static_cast<long long>(of));
  } else {
    std::snprintf(text + used, size - used, "[%s%lld]", what, static_cast<long long>(index));
  }
}

}  // namespace

void name_array(const NamedArray& array) {
  if (g_count == kMaxArrays || array.begin == nullptr) return;
  Entry& entry = g_entries[g_count++];
  entry.array = array;
  std::snprintf(entry.name, sizeof entry.name, "%s", array.name);
  entry.array.name = entry.name;
  if (entry.array.element_bytes == 0) entry.array.element_bytes = 1;
  entry.allocation = {};
  (void)find_allocation(array.begin, &entry.allocation);
  poison_around(entry);
}

void forget_arrays() {
  for (std::size_t i = 0; i < g_count; ++i) {
    const AllocationRange& allocation = g_entries[i].allocation;
    asan_unpoison(reinterpret_cast<const void*>(allocation.low), allocation.bytes);
  }
  g_count = 0;
}

const NamedArray* array_at(const void* address) {
  for (std::size_t i = 0; i < g_count; ++i) {
    if (g_entries[i].distance_to(address) == 0) return &g_entries[i].array;
  }
  return nullptr;
}

bool describe_element(const void* address, ElementText* element) {
  const Entry* entry = nearest_entry(address);
  if (entry == nullptr) return false;
  const NamedArray& array = entry->array;
  const auto count = static_cast<std::int64_t>(array.bytes / array.element_bytes);
  const std::int64_t index =
      floor_div(entry->offset_of(address), static_cast<std::int64_t>(array.element_bytes));
  const auto columns = static_cast<std::int64_t>(array.columns);
  const auto rows = static_cast<std::int64_t>(array.rows);
  element->inside = entry->distance_to(address) == 0;
  std::snprintf(element->text, sizeof element->text, "%s", entry->name);
  char* text = element->text;
  constexpr std::size_t kSize = sizeof element->text;
  if (columns == 0) {
    add_index(text, kSize, "", index, count);
    return true;
  }
  const std::int64_t row = floor_div(index, columns);
  const std::int64_t all_rows = count / columns;
  if (rows == 0) {
    add_index(text, kSize, "row ", row, all_rows);
  } else {
    const std::int64_t matrix = floor_div(row, rows);
    add_index(text, kSize, "matrix ", matrix, all_rows / rows);
    add_index(text, kSize, "row ", row - matrix * rows, rows);
  }
  add_index(text, kSize, "col ", index - row * columns, columns);
  return true;
}

}  // namespace emulator
