#include "buffers.h"

#include <algorithm>
#include <cstdio>

#include "mistakes.h"
#include "random.h"

namespace moe::judge {
namespace {

constexpr size_t kRedZone = 4096;
constexpr size_t kLargestRedZone = 256 * 1024;
constexpr size_t kAlignment = 256;

size_t rounded_up(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

void fill_random(unsigned char* begin, size_t count, Random& random) {
  for (size_t i = 0; i < count; ++i) begin[i] = static_cast<unsigned char>(random.bits());
}

// Behind an array a stray write may go as far as the array is long (rows stored in padded order),
// and is better caught than left to corrupt something else.
size_t red_zone_behind(const HostBuffer& buffer) {
  return std::clamp(rounded_up(buffer.payload.size()), kRedZone, kLargestRedZone);
}

// Where the payload lies in the image of a buffer (sparse ones have no red zones: their range is
// surrounded by the rest of the array).
size_t payload_position(const HostBuffer& buffer) {
  return buffer.sparse_bytes > 0 ? 0 : kRedZone;
}

size_t image_size(const HostBuffer& buffer) {
  if (buffer.null) return 0;
  if (buffer.sparse_bytes > 0) return buffer.payload.size();
  return kRedZone + rounded_up(buffer.payload.size() + buffer.tail.size()) +
         red_zone_behind(buffer);
}

// `first` and `last`: positions in the image of the changed bytes outside the payload.
Verdict outside_write(const HostBuffer& buffer, size_t first, size_t last, size_t changed) {
  const auto begin = static_cast<int64_t>(payload_position(buffer));
  const auto end = begin + static_cast<int64_t>(buffer.payload.size());
  const auto distance = [&](size_t position) {
    const auto place = static_cast<int64_t>(position);
    return place < begin ? place - begin : place - end;
  };
  Verdict verdict = wrong("Memory outside `" + buffer.name + "` was written.");
  verdict.code = kOutOfBounds.code;
  verdict.outside_of = buffer.name;
  verdict.outside_first = distance(first);
  verdict.outside_last = distance(last);
  const bool before = verdict.outside_first < 0;
  verdict.evidence = {std::to_string(changed) + " bytes changed; the first lies " +
                      std::to_string(before ? -verdict.outside_first : verdict.outside_first) +
                      (before ? " bytes before the start of `" : " bytes past the end of `") +
                      buffer.name + "` (" + std::to_string(buffer.payload.size()) + " bytes)"};
  return verdict;
}

Verdict modified_input(const HostBuffer& buffer, size_t offset, size_t changed) {
  Verdict verdict = wrong("The input `" + buffer.name + "` was changed; inputs are never written.");
  verdict.code = kModified.code;
  verdict.evidence = {std::to_string(changed) + " bytes changed; the first is byte " +
                      std::to_string(offset) + " of " + std::to_string(buffer.payload.size())};
  return verdict;
}

}  // namespace

HostBuffer workspace(std::string name, size_t bytes, uint64_t seed) {
  Random random(seed);
  HostBuffer buffer;
  buffer.name = std::move(name);
  buffer.role = Role::kWorkspace;
  buffer.payload.resize(bytes);
  fill_random(buffer.payload.data(), bytes, random);
  buffer.null = bytes == 0;
  return buffer;
}

Images images_of(const Call& call, uint64_t seed) {
  Random random(seed);
  Images images;
  for (const HostBuffer& buffer : call.buffers) {
    protocol::Buffer place = {};
    const size_t size = image_size(buffer);
    place.image_offset = images.bytes.size();
    place.image_bytes = size;
    place.filled_offset = buffer.sparse_offset;
    place.payload_offset = buffer.sparse_bytes > 0 ? 0 : kRedZone;
    place.allocation_bytes = buffer.sparse_bytes > 0 ? buffer.sparse_bytes : size;
    std::snprintf(place.name, sizeof place.name, "%s", buffer.name.c_str());
    place.payload_bytes = buffer.sparse_bytes > 0 ? buffer.sparse_bytes : buffer.payload.size();
    place.element_bytes = static_cast<uint32_t>(buffer.element_bytes);
    place.columns = static_cast<uint32_t>(buffer.columns);
    place.rows = static_cast<uint32_t>(buffer.rows);
    place.unwritten = buffer.role == Role::kInput ? 0 : 1;
    images.places.push_back(place);
    images.bytes.resize(images.bytes.size() + size);
    if (size == 0) continue;
    unsigned char* image = images.bytes.data() + place.image_offset;
    if (buffer.sparse_bytes == 0) fill_random(image, size, random);
    unsigned char* payload = image + payload_position(buffer);
    std::copy(buffer.payload.begin(), buffer.payload.end(), payload);
    std::copy(buffer.tail.begin(), buffer.tail.end(), payload + buffer.payload.size());
  }
  return images;
}

Verdict check_untouched(const Call& call, const Images& before, const Bytes& after) {
  for (size_t i = 0; i < call.buffers.size(); ++i) {
    const HostBuffer& buffer = call.buffers[i];
    const size_t base = before.places[i].image_offset;
    const size_t begin = payload_position(buffer);
    const size_t end = begin + buffer.payload.size();
    size_t outside = 0;
    size_t inside = 0;
    size_t first_outside = 0;
    size_t last_outside = 0;
    size_t first_inside = 0;
    for (size_t k = 0; k < before.places[i].image_bytes; ++k) {
      if (before.bytes[base + k] == after[base + k]) continue;
      const bool in_payload = k >= begin && k < end;
      if (in_payload && inside++ == 0) first_inside = k;
      if (in_payload) continue;
      if (outside++ == 0) first_outside = k;
      last_outside = k;
    }
    if (outside > 0) return outside_write(buffer, first_outside, last_outside, outside);
    if (inside > 0 && buffer.role == Role::kInput) {
      return modified_input(buffer, first_inside - begin, inside);
    }
  }
  return {};
}

Bytes payload_after(const Call& call, const Images& images, const Bytes& after, size_t index) {
  const HostBuffer& buffer = call.buffers[index];
  if (buffer.null) return {};
  const auto begin = after.begin() + static_cast<std::ptrdiff_t>(images.places[index].image_offset +
                                                                 payload_position(buffer));
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(buffer.payload.size()));
}

}  // namespace moe::judge
