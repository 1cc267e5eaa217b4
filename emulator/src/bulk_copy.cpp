#include "bulk_copy.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "block.h"

namespace emulator {

namespace {

// One thread's store must leave alone what another block adds to.
void add_bf16(unsigned char* address, std::uint16_t value) {
  const auto widen = [](std::uint16_t bits) {
    const std::uint32_t word = std::uint32_t{bits} << 16;
    float wide = 0;
    std::memcpy(&wide, &word, sizeof wide);
    return wide;
  };
  const auto round = [](float wide) {
    std::uint32_t word = 0;
    std::memcpy(&word, &wide, sizeof word);
    if (wide != wide) return static_cast<std::uint16_t>(0x7fff);
    return static_cast<std::uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
  };
  auto* place = reinterpret_cast<std::uint16_t*>(address);
  std::uint16_t old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, round(widen(old) + widen(value)), false,
                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

// Copies between a row of 128 bytes and its swizzled place in shared memory.
unsigned char* chunk_address(const unsigned char* row, std::size_t chunk) {
  const auto address = reinterpret_cast<std::uintptr_t>(row) + chunk * SharedLines::kBytes;
  return reinterpret_cast<unsigned char*>(swizzle_128(address));
}

// Rows of a box are 128 bytes in shared memory, less in the array at its edges.
void tell_bulk(const void* address, std::size_t bytes, bool writes, Place place) {
  if (observer() == nullptr || bytes == 0) return;
  Access access;
  access.address = address;
  access.bytes = static_cast<std::uint32_t>(bytes);
  access.via = Via::kBulk;
  access.reads = !writes;
  access.writes = writes;
  access.place = place;
  tell_access(access);
}

std::uint32_t hash_of_box(const unsigned char* box, std::size_t bytes) {
  std::uint32_t hash = 0;
  for (std::size_t i = 0; i < bytes; i += SharedLines::kBytes) {
    hash = hash * 31 + SharedLines::hash_of(box + i);
  }
  return hash;
}

// The hardware fetches chunks of 16 bytes: in a row a box starts at one. An H200 reports anything
// else as cudaErrorIllegalInstruction.
void check_column(const BoxStart& start, int element_bytes, const char* function, Place place) {
  const std::int64_t byte = std::int64_t{start.coordinates[0]} * element_bytes;
  if (byte % static_cast<std::int64_t>(SharedLines::kBytes) == 0) return;
  t_block->fail("bulk copy",
                std::string(function) + ": the box starts at column " +
                    std::to_string(start.coordinates[0]) + ", byte " + std::to_string(byte) +
                    " of a row, which must be a multiple of 16 bytes: a GPU reports an illegal "
                    "instruction",
                place);
}

}  // namespace

TensorMap BulkCopies::check(const void* shared,
                            const CUtensorMap& map,
                            const BoxStart& start,
                            const char* function,
                            Place place) {
  TensorMap contents;
  if (!read_tensor_map(map, &contents)) {
    t_block->fail("bulk copy",
                  std::string(function) + ": no tensor map that make_tensor_map() made", place);
  }
  if (contents.rank != start.rank) {
    t_block->fail("bulk copy",
                  std::string(function) + ": the map has " + std::to_string(contents.rank) +
                      " dimensions, the call " + std::to_string(start.rank) + " coordinates",
                  place);
  }
  check_column(start, contents.element_bytes, function, place);
  if (reinterpret_cast<std::uintptr_t>(shared) % kBoxRowBytes != 0) {
    misaligned(function, shared, kBoxRowBytes, place);
  }
  if (!t_block->in_shared(shared, contents.box_bytes())) {
    t_block->fail("out of bounds",
                  std::string(function) + ": the box of " + std::to_string(contents.box_bytes()) +
                      " bytes is not in shared memory",
                  place);
  }
  return contents;
}

void BulkCopies::reset() {
  loads_.clear();
  stores_.clear();
  groups_.clear();
}

void BulkCopies::load(
    void* shared, const TensorMap& map, const BoxStart& start, Mbarrier& barrier, Place place) {
  auto* to = static_cast<unsigned char*>(shared);
  std::memset(to, 0xff, map.box_bytes());
  block_.lines.start_copy(block_.shared_offset(to), map.box_bytes());
  barrier.coming += static_cast<std::int64_t>(map.box_bytes());
  loads_.push_back({to, map, start, 0, &barrier, place});
  for (int row = 0; observer() != nullptr && row < map.box_rows; ++row) {
    const BoxRow inside = box_row(map, start, row);
    // A multicast reads the array once.
    if (&block_ == t_block) tell_bulk(inside.array, inside.count, false, place);
    tell_bulk(to + static_cast<std::size_t>(row) * kBoxRowBytes, kBoxRowBytes, true, place);
  }
}

void BulkCopies::load_word(void* shared, std::uint32_t value, Mbarrier& barrier, Place place) {
  auto* to = static_cast<unsigned char*>(shared);
  std::memset(to, 0xff, sizeof value);
  barrier.coming += sizeof value;
  loads_.push_back({to, {}, {}, value, &barrier, place});
}

void BulkCopies::land(Mbarrier& barrier) {
  for (std::size_t i = 0; i < loads_.size() && !block_.failed();) {
    if (loads_[i].barrier != &barrier) {
      ++i;
      continue;
    }
    const Load load = loads_[i];
    loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(i));
    block_.touching = load.place;
    if (load.map.rank == 0) {
      std::memcpy(load.to, &load.word, sizeof load.word);
    } else {
      for (int row = 0; row < load.map.box_rows; ++row) {
        unsigned char bytes[kBoxRowBytes] = {};
        const BoxRow inside = box_row(load.map, load.start, row);
        if (inside.count != 0) std::memcpy(bytes + inside.first, inside.array, inside.count);
        const unsigned char* to = load.to + static_cast<std::size_t>(row) * kBoxRowBytes;
        for (std::size_t c = 0; c < kBoxRowBytes / SharedLines::kBytes; ++c) {
          std::memcpy(chunk_address(to, c), bytes + c * SharedLines::kBytes, SharedLines::kBytes);
        }
      }
      block_.lines.land_bulk_copy(block_.shared_offset(load.to), load.to, load.bytes());
    }
    block_.touching = {};
    if (Observer* o = observer()) o->async_landed(block_, -1, load.to, load.bytes());
    tell_arrival(block_, -1, barrier.address, load.place);
    block_.mbarriers.complete_bytes(barrier, static_cast<std::int64_t>(load.bytes()), load.place);
  }
}

void BulkCopies::store(
    const void* shared, const TensorMap& map, const BoxStart& start, bool add, Place place) {
  const int thread = block_.current().linear;
  if (groups_.size() <= static_cast<std::size_t>(thread)) {
    groups_.resize(static_cast<std::size_t>(thread) + 1);
  }
  Store store;
  store.from = static_cast<const unsigned char*>(shared);
  store.map = map;
  store.start = start;
  store.add = add;
  store.thread = thread;
  store.group = groups_[static_cast<std::size_t>(thread)];
  store.place = place;
  check_fences(store);
  store.hash = hash_of_box(store.from, map.box_bytes());
  stores_.push_back(std::move(store));
}

void BulkCopies::check_fences(const Store& store) {
  const std::uint32_t offset = block_.shared_offset(store.from);
  for (std::size_t i = 0; i < store.map.box_bytes(); i += SharedLines::kBytes) {
    std::uint32_t hash = 0;
    const auto problem = block_.lines.read(offset + static_cast<std::uint32_t>(i), store.from + i,
                                           store.thread, 1, &hash);
    block_.refuse_async_read(problem, store.add ? "tma_reduce_add" : "tma_store", store.from + i,
                             store.place);
  }
}

void BulkCopies::read(Store& store) {
  if (store.was_read) return;
  store.was_read = true;
  if (hash_of_box(store.from, store.map.box_bytes()) != store.hash) {
    block_.fail("missing wait",
                "shared memory was written while a bulk store had still to read it: "
                "bulk_wait_read() comes first",
                store.place);
  }
  tell_bulk(store.from, store.map.box_bytes(), false, store.place);
  store.data.resize(store.map.box_bytes());
  for (std::size_t i = 0; i < store.data.size(); i += SharedLines::kBytes) {
    std::memcpy(&store.data[i], chunk_address(store.from, i / SharedLines::kBytes),
                SharedLines::kBytes);
  }
}

void BulkCopies::write(const Store& store) {
  t_block->touching = store.place;
  for (int row = 0; row < store.map.box_rows; ++row) {
    const BoxRow inside = box_row(store.map, store.start, row);
    if (inside.count == 0) continue;
    tell_bulk(inside.array, inside.count, true, store.place);
    const unsigned char* bytes =
        &store.data[static_cast<std::size_t>(row) * kBoxRowBytes + inside.first];
    if (!store.add) {
      std::memcpy(inside.array, bytes, inside.count);
      continue;
    }
    for (std::size_t i = 0; i < inside.count; i += sizeof(std::uint16_t)) {
      std::uint16_t value = 0;
      std::memcpy(&value, bytes + i, sizeof value);
      add_bf16(inside.array + i, value);
    }
  }
  t_block->touching = {};
}

void BulkCopies::commit(int thread) {
  const auto i = static_cast<std::size_t>(thread);
  if (i < groups_.size()) ++groups_[i];
}

void BulkCopies::wait(int thread, int pending_groups, bool read_only) {
  const auto i = static_cast<std::size_t>(thread);
  if (i >= groups_.size()) return;
  const int end = groups_[i] - pending_groups;
  for (Store& store : stores_) {
    if (store.thread != thread || store.group >= end) continue;
    read(store);
    if (!read_only) write(store);
  }
  if (read_only) return;
  stores_.erase(std::remove_if(stores_.begin(), stores_.end(),
                               [thread, end](const Store& store) {
                                 return store.thread == thread && store.group < end;
                               }),
                stores_.end());
}

int BulkCopies::leave(int thread, Place* place) {
  int unread = 0;
  for (const Store& store : stores_) {
    if (store.thread != thread) continue;
    if (store.was_read) {
      write(store);
    } else {
      ++unread;
      *place = store.place;
    }
  }
  stores_.erase(std::remove_if(stores_.begin(), stores_.end(),
                               [thread](const Store& store) { return store.thread == thread; }),
                stores_.end());
  return unread;
}

// ---- What device code calls.

void fence_proxy_async() {
  Block& block = *t_block;
  const int thread = block.current().linear;
  block.lines.fence(thread);
  block.mbarriers.fence(thread);
  if (Observer* o = observer()) o->fence(block, thread, FenceKind::kProxyAsync);
}

void tma_load(void* shared,
              const CUtensorMap& map,
              const BoxStart& start,
              std::uint64_t* barrier,
              Place place) {
  const TensorMap contents = BulkCopies::check(shared, map, start, "tma_load", place);
  Block& block = *t_block;
  block.bulk_copies.load(shared, contents, start,
                         block.mbarriers.at(barrier, "tma_load", true, place), place);
}

void tma_store(
    const CUtensorMap& map, const void* shared, const BoxStart& start, bool add, Place place) {
  const char* function = add ? "tma_reduce_add" : "tma_store";
  const TensorMap contents = BulkCopies::check(shared, map, start, function, place);
  if (add && contents.element_bytes != 2) {
    t_block->fail("bulk copy", "tma_reduce_add: elements of one byte can't be added", place);
  }
  t_block->bulk_copies.store(shared, contents, start, add, place);
}

void bulk_commit() {
  t_block->bulk_copies.commit(t_block->current().linear);
}

void bulk_wait(int pending_groups, bool read_only, Place) {
  t_block->bulk_copies.wait(t_block->current().linear, pending_groups, read_only);
}

}  // namespace emulator
