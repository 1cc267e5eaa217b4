#include "cluster.h"

#include <emulator/hopper.h>

#include <algorithm>
#include <cstring>

namespace emulator {

bool Cluster::run(const KernelCall& call, uint3 first, dim3 grid_dim) {
  arrived_ = 0;
  for (int rank = 0; rank < size(); ++rank) {
    block(rank).start(call, {first.x + static_cast<unsigned>(rank), first.y, first.z}, grid_dim,
                      *this, rank);
    if (Observer* o = observer()) o->block_begins(block(rank));
  }
  for (;;) {
    const bool ran = run_some();
    if (failed() != nullptr) return false;
    const bool ended =
        std::all_of(blocks_.begin(), blocks_.end(), [](Block* b) { return b->live() == 0; });
    if (ended) break;
    if (ran) continue;
    bool moved = false;
    for (Block* b : blocks_) moved = moved || b->settle();
    for (Block* b : blocks_) moved = b->refuse_polls(moved) || moved;
    if (failed() != nullptr) return false;
    if (!moved) {
      report_deadlock();
      return false;
    }
  }
  for (Block* b : blocks_) b->finish();
  if (failed() != nullptr) return false;
  if (Observer* o = observer()) {
    for (Block* b : blocks_) o->block_ends(*b);
  }
  return true;
}

bool Cluster::run_some() {
  bool ran = false;
  for (Block* b : blocks_) {
    if (!b->can_run()) continue;
    ran = true;
    b->resume();
    if (failed() != nullptr) return true;
    b->settle_if_asked();
    if (failed() != nullptr) return true;
  }
  return ran;
}

const Block* Cluster::failed() const {
  const auto found =
      std::find_if(blocks_.begin(), blocks_.end(), [](const Block* b) { return b->failed(); });
  return found == blocks_.end() ? nullptr : *found;
}

void Cluster::report_deadlock() {
  const bool alone = size() == 1;
  Block& shown =
      **std::find_if(blocks_.begin(), blocks_.end(), [](const Block* b) { return b->live() > 0; });
  shown.set_block_fault(
      "deadlock", std::string("no thread of the ") + (alone ? "block" : "cluster") + " can go on");
  for (Block* b : blocks_) {
    if (!alone) shown.add_to_fault("\n  rank " + std::to_string(b->rank()) + ":");
    shown.add_to_fault(b->describe_states());
  }
}

void Cluster::sync(Block& own, Place place) {
  ++arrived_;
  const Sync sync{SyncKind::kCluster, Operation::kClusterSync, 0, 0, place};
  if (Observer* o = observer()) o->arrive(own, own.current().linear, sync);
  own.queue_current(own.cluster_waiting, Operation::kClusterSync, place);
  release_if_complete();
  own.switch_away();
  if (Observer* o = observer()) o->pass(own, own.current().linear, sync);
}

// The last to arrive waits too, for a moment: all are queued anew.
void Cluster::release_if_complete() {
  int live = 0;
  for (const Block* b : blocks_) live += b->live();
  if (arrived_ == 0 || arrived_ < live) return;
  arrived_ = 0;
  if (Observer* o = observer()) {
    o->complete(*blocks_.front(), {SyncKind::kCluster, Operation::kClusterSync, 0, 0, {}});
  }
  for (Block* b : blocks_) b->wake(b->cluster_waiting);
}

Block& Cluster::peer(int rank, const char* function, Place place) {
  if (rank < 0 || rank >= size()) {
    t_block->fail("out of bounds",
                  std::string(function) + ": block " + std::to_string(rank) + " of a cluster of " +
                      std::to_string(size()),
                  place);
  }
  if (block(rank).live() == 0) {
    t_block->fail("cluster",
                  std::string(function) + ": block " + std::to_string(rank) +
                      " of the cluster has ended, and its shared memory is gone: "
                      "cluster_sync() before the end",
                  place);
  }
  return block(rank);
}

// ---- What device code calls.

void cluster_sync(Place place) {
  t_block->cluster().sync(*t_block, place);
}

int cluster_rank() {
  return t_block->rank();
}

void mbarrier_arrive_remote(std::uint64_t* barrier, int rank, Place place) {
  constexpr const char* kName = "mbarrier_arrive_remote";
  Block& own = *t_block;
  Block& peer = own.cluster().peer(rank, kName, place);
  std::uint64_t* there = Cluster::same_place(own, peer, barrier);
  tell_arrival(own, own.current().linear, there, place);
  peer.mbarriers.arrive(peer.mbarriers.at(there, kName, &peer != &own, place), 0, place);
}

void store_async_remote(int* address, int value, std::uint64_t* barrier, int rank, Place place) {
  constexpr const char* kName = "store_async_remote";
  Block& own = *t_block;
  if (own.cluster().size() == 1) {
    own.fail("cluster", "store_async_remote() in a kernel that was launched without clusters",
             place);
  }
  Block& peer = own.cluster().peer(rank, kName, place);
  if (reinterpret_cast<std::uintptr_t>(address) % sizeof value != 0) {
    misaligned(kName, address, sizeof value, place);
  }
  if (!own.in_shared(address, sizeof value)) {
    own.fail("out of bounds", "store_async_remote: the place is not in shared memory", place);
  }
  std::uint64_t* there = Cluster::same_place(own, peer, barrier);
  std::uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  peer.bulk_copies.load_word(Cluster::same_place(own, peer, address), word,
                             peer.mbarriers.at(there, kName, true, place), place);
}

void tma_load_multicast(void* shared,
                        const CUtensorMap& map,
                        const BoxStart& start,
                        std::uint64_t* barrier,
                        std::uint16_t ranks,
                        Place place) {
  constexpr const char* kName = "tma_load_multicast";
  Block& own = *t_block;
  const TensorMap contents = BulkCopies::check(shared, map, start, kName, place);
  for (int rank = 0; rank < 16; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    Block& peer = own.cluster().peer(rank, kName, place);
    std::uint64_t* there = Cluster::same_place(own, peer, barrier);
    peer.bulk_copies.load(Cluster::same_place(own, peer, static_cast<unsigned char*>(shared)),
                          contents, start, peer.mbarriers.at(there, kName, true, place), place);
  }
}

}  // namespace emulator
