// Bulk tensor copies of one block: loads land when somebody can't go on without them, stores read
// shared memory at the wait for the reads and write global memory at the wait for the writes.
#pragma once

#include <emulator/hopper.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mbarrier.h"
#include "tensor_map.h"

namespace emulator {

class BulkCopies {
 public:
  explicit BulkCopies(Block& block) : block_(block) {}
  void reset();

  // Refuses a wrong map, start or place.
  static TensorMap check(const void* shared,
                         const CUtensorMap& map,
                         const BoxStart& start,
                         const char* function,
                         Place place);

  // ---- Into this block's shared memory, also by another block of its cluster.
  void load(
      void* shared, const TensorMap& map, const BoxStart& start, Mbarrier& barrier, Place place);
  void load_word(void* shared, std::uint32_t value, Mbarrier& barrier, Place place);
  // Lands what comes to this barrier.
  void land(Mbarrier& barrier);
  std::size_t loads_under_way() const { return loads_.size(); }
  Place oldest_load() const { return loads_.front().place; }

  // ---- Out of it, by one thread's bulk groups.
  void store(
      const void* shared, const TensorMap& map, const BoxStart& start, bool add, Place place);
  void commit(int thread);
  void wait(int thread, int pending_groups, bool read_only);
  // What a thread that returns leaves unread; the rest is written.
  int leave(int thread, Place* place);

 private:
  struct Load {
    unsigned char* to = nullptr;
    TensorMap map;  // rank 0: one word instead
    BoxStart start;
    std::uint32_t word = 0;
    Mbarrier* barrier = nullptr;
    Place place;

    std::size_t bytes() const { return map.rank == 0 ? sizeof word : map.box_bytes(); }
  };

  struct Store {
    const unsigned char* from = nullptr;
    TensorMap map;
    BoxStart start;
    bool add = false;
    int thread = 0;
    int group = 0;
    std::uint32_t hash = 0;  // of what was there at the call
    bool was_read = false;
    std::vector<unsigned char> data;  // what was read, rows of the box, not swizzled
    Place place;
  };

  void check_fences(const Store& store);
  void read(Store& store);
  static void write(const Store& store);

  Block& block_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
  std::vector<int> groups_;  // by thread: bulk groups closed so far
};

}  // namespace emulator
