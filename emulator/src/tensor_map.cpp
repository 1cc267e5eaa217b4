#include "tensor_map.h"

#include <algorithm>
#include <cstring>

#include "fault.h"

namespace emulator {

namespace {

constexpr std::uint64_t kMark = 0x54656e736f724d70u;
constexpr std::uint64_t kMaxSize = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;

}  // namespace

// Refuses what the driver refuses.
cudaError_t encode_tensor_map(CUtensorMap* map,
                              int element_bytes,
                              const void* array,
                              int rank,
                              const std::uint64_t (&sizes)[3],
                              int box_rows) {
  const std::uint64_t row_bytes = sizes[0] * static_cast<std::uint64_t>(element_bytes);
  bool valid = map != nullptr && array != nullptr && box_rows >= 1 && box_rows <= 256 &&
               reinterpret_cast<std::uintptr_t>(array) % 16 == 0 && row_bytes % 16 == 0;
  for (int i = 0; i < rank; ++i) valid = valid && sizes[i] >= 1 && sizes[i] <= kMaxSize;
  valid = valid && row_bytes < kMaxStride && (rank == 2 || row_bytes * sizes[1] < kMaxStride);
  if (!valid) return cudaErrorInvalidValue;
  TensorMap contents;
  contents.mark = kMark;
  contents.array = static_cast<unsigned char*>(const_cast<void*>(array));
  std::copy(sizes, sizes + rank, contents.sizes);
  contents.rank = rank;
  contents.element_bytes = element_bytes;
  contents.box_rows = box_rows;
  static_assert(sizeof contents <= sizeof *map);
  std::memcpy(map, &contents, sizeof contents);
  return cudaSuccess;
}

bool read_tensor_map(const CUtensorMap& map, TensorMap* contents) {
  std::memcpy(contents, &map, sizeof *contents);
  return contents->mark == kMark;
}

BoxRow box_row(const TensorMap& map, const BoxStart& start, int row) {
  const std::int64_t y = std::int64_t{start.coordinates[1]} + row;
  const std::int64_t z = start.coordinates[2];
  if (y < 0 || y >= static_cast<std::int64_t>(map.sizes[1])) return {};
  if (map.rank == 3 && (z < 0 || z >= static_cast<std::int64_t>(map.sizes[2]))) return {};
  const std::int64_t width = static_cast<std::int64_t>(kBoxRowBytes) / map.element_bytes;
  const std::int64_t x = start.coordinates[0];
  const std::int64_t low = std::max<std::int64_t>(x, 0);
  const std::int64_t high = std::min(x + width, static_cast<std::int64_t>(map.sizes[0]));
  if (low >= high) return {};
  const std::int64_t plane_rows = map.rank == 3 ? z * static_cast<std::int64_t>(map.sizes[1]) : 0;
  const std::int64_t element = (plane_rows + y) * static_cast<std::int64_t>(map.sizes[0]) + low;
  return {map.array + element * map.element_bytes,
          static_cast<std::size_t>((low - x) * map.element_bytes),
          static_cast<std::size_t>((high - low) * map.element_bytes)};
}

}  // namespace emulator
