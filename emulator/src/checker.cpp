// EMULATOR_WATCH=check: races in shared and global memory, reads of what nobody wrote, reads of
// what a copy has not brought yet, accesses outside of an array. What is found becomes the fault of
// the launch, when it has ended.
#include <emulator/control.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "access_shadow.h"
#include "block.h"
#include "cluster.h"
#include "device.h"
#include "fault.h"
#include "findings.h"
#include "happens_before.h"
#include "named_arrays.h"
#include "observer.h"
#include "watch.h"

namespace emulator {

namespace {

class Checker : public Observer {
 public:
  void launch_begins(const Grid& grid) override;
  void launch_ends(bool faulted) override;
  void block_begins(Block& block) override;
  void access(Block& block, int thread, const Access& access) override;
  void async_landed(Block& block, int thread, const void* shared, std::size_t bytes) override;
  void arrive(Block& block, int thread, const Sync& sync) override;
  void complete(Block& block, const Sync& sync) override;
  void pass(Block& block, int thread, const Sync& sync) override;
  void fence(Block& block, int thread, FenceKind kind) override;
  void host_writes(const void* to, std::size_t bytes) override;

 private:
  using Knowledge = HappensBefore::Knowledge;
  using Actor = Findings::Actor;

  // An access under examination.
  struct Now {
    PastAccess past;  // as it will be remembered
    const Access* access;
    Block* block;
  };

  // What threads that meet pass on.
  struct Meeting {
    Knowledge arrived;
    Knowledge complete;
  };

  std::uint32_t block_number(const Block& block) const;
  std::uint32_t warp_of(const Block& block, int thread) const {
    return order_.warp_of(block_number(block), thread);
  }
  ShadowCell& cell_at(Block& block, const void* address, Space space);
  Meeting& meeting(const Block& block, const Sync& sync);
  void synchronize_by_atomic(const Access& access, std::uint32_t warp, bool before);
  // False: what is outside belongs to nobody, and no more is said about it.
  bool check_bounds(const Now& now);
  void check_read(const Now& now, const char* address, ShadowCell& cell);
  void check_write(const Now& now, const char* address, ShadowCell& cell);
  void check_order(const Now& now, const char* address, const PastAccess& past, const char* verb);
  void remember_read(const Now& now, ShadowCell& cell) const;
  Actor actor_of(const PastAccess& past, const char* verb) const;
  std::string name_of(const Now& now, const char* address) const;

  HappensBefore order_;
  GlobalShadow global_;
  std::array<SharedShadow, kMaxClusterBlocks> shared_;  // by rank
  Findings findings_;
  dim3 grid_dim_;
  dim3 block_dim_;
  std::uint32_t launch_ = 0;
  std::uint32_t blocks_begun_ = 0;
  std::map<std::uintptr_t, Knowledge> atomics_;
  std::map<std::pair<std::uintptr_t, int>, Meeting>
      meetings_;      // by object, and rank where it counts
  Knowledge landed_;  // who asked for the bulk loads that have arrived, until their barrier is told
};

void Checker::launch_begins(const Grid& grid) {
  ++launch_;
  grid_dim_ = grid.grid_dim;
  block_dim_ = grid.block_dim;
  order_.begin_launch((block_dim_.x * block_dim_.y * block_dim_.z + 31) / 32);
  atomics_.clear();
}

void Checker::launch_ends(bool faulted) {
  if (findings_.empty()) return;
  std::string text = findings_.text();
  if (faulted) text += std::string("\n") + fault();
  clear_fault();
  record_fault({cudaErrorLaunchFailure, text});
}

std::uint32_t Checker::block_number(const Block& block) const {
  const uint3 index = block.index();
  return (index.z * grid_dim_.y + index.y) * grid_dim_.x + index.x;
}

void Checker::block_begins(Block& block) {
  if (block.rank() == 0) {
    order_.begin_cluster(block_number(block), static_cast<std::uint32_t>(block.cluster().size()));
    meetings_.clear();
    landed_.clear();
  }
  shared_[static_cast<std::size_t>(block.rank())].begin_block(++blocks_begun_);
}

ShadowCell& Checker::cell_at(Block& block, const void* address, Space space) {
  if (space == Space::kShared) {
    return shared_[static_cast<std::size_t>(block.rank())].at(block.shared_offset(address));
  }
  const NamedArray* array = array_at(address);
  const bool written = array == nullptr || array->is_written;
  ShadowCell& cell = global_.at(reinterpret_cast<std::uintptr_t>(address), written);
  cell.belong_to(launch_);
  return cell;
}

// ---- Words

Findings::Actor Checker::actor_of(const PastAccess& past, const char* verb) const {
  const std::uint32_t block = order_.block_of(past.stamp.warp);
  const std::uint32_t thread =
      (past.stamp.warp - order_.warp_of(block, 0)) * kLanes + past.stamp.lane;
  Actor actor;
  actor.block = {block % grid_dim_.x, block / grid_dim_.x % grid_dim_.y,
                 block / grid_dim_.x / grid_dim_.y};
  actor.thread = {thread % block_dim_.x, thread / block_dim_.x % block_dim_.y,
                  thread / block_dim_.x / block_dim_.y};
  actor.verb = verb;
  actor.where = past.where;
  return actor;
}

std::string Checker::name_of(const Now& now, const char* address) const {
  ElementText element{};
  if (now.access->space == Space::kGlobal) {
    return describe_element(address, &element) ? element.text : "device memory";
  }
  const auto* dynamic = reinterpret_cast<const char*>(now.block->dynamic_shared);
  if (address < dynamic || address >= dynamic + now.block->dynamic_shared_bytes) {
    return "a __shared__ variable";
  }
  return "byte " + std::to_string(address - dynamic) + " of dynamic shared memory";
}

// ---- One access

void Checker::access(Block& block, int thread, const Access& access) {
  const std::uint32_t warp = warp_of(block, thread);
  const bool atomic = access.via == Via::kAtomic;
  if (atomic) synchronize_by_atomic(access, warp, true);
  const Now now{{order_.now(warp, thread), findings_.where(access.place, access.pc), atomic},
                &access,
                &block};
  if (access.space == Space::kGlobal && !check_bounds(now)) return;
  const auto* address = static_cast<const char*>(access.address);
  for (std::uint32_t i = 0; i < access.bytes; ++i) {
    // A wide access may reach behind what is shared.
    if (access.space == Space::kShared && block.shared_offset(address + i) >= kSharedWindowBytes) {
      break;
    }
    ShadowCell& cell = cell_at(block, address + i, access.space);
    if (access.reads) check_read(now, address + i, cell);
    if (access.writes) check_write(now, address + i, cell);
  }
  if (atomic) synchronize_by_atomic(access, warp, false);
}

// An atomic in global memory that asks for no order passes on what lies before the last
// __threadfence(). All other ones, and those in shared memory, pass on everything.
void Checker::synchronize_by_atomic(const Access& access, std::uint32_t warp, bool before) {
  const auto address = reinterpret_cast<std::uintptr_t>(access.address);
  if (before) {
    const auto known = atomics_.find(address);
    if (access.reads && known != atomics_.end()) order_.acquire(warp, known->second);
    return;
  }
  if (!access.writes) return;
  if (access.space == Space::kGlobal && access.order == MemoryOrder::kRelaxed) {
    order_.release_fenced(warp, &atomics_[address]);
  } else {
    order_.release(warp, &atomics_[address]);
  }
}

bool Checker::check_bounds(const Now& now) {
  const auto* first = static_cast<const char*>(now.access->address);
  const char* last = first + now.access->bytes - 1;
  ElementText element{};
  // Of what has no name, only the allocation is known, and that was looked at.
  AllocationRange range;
  if (!find_allocation(first, &range) || !describe_element(first, &element)) return true;
  const bool reaches_out = element.inside && array_at(last) != array_at(first);
  if (element.inside && !reaches_out) return true;
  if (!findings_.is_new("bounds", now.past.where, 0)) return false;
  const char* verb = now.access->writes ? "write" : "read";
  const std::string bytes = now.access->via == Via::kPlain
                                ? " of " + std::to_string(now.access->bytes) +
                                      (now.access->bytes == 1 ? " byte" : " bytes")
                                : "";
  findings_.add(
      "out of bounds",
      verb + bytes + " at " + element.text + (reaches_out ? ", which reaches behind its end" : ""),
      {actor_of(now.past, now.access->writes ? "writes" : "reads")});
  return false;
}

void Checker::check_order(const Now& now,
                          const char* address,
                          const PastAccess& past,
                          const char* verb) {
  if (past.stamp.clock == 0 || (past.atomic && now.past.atomic)) return;
  if (order_.is_ordered(past.stamp, now.past.stamp)) return;
  if (!findings_.is_new("order", now.past.where, past.where)) return;
  const bool two_blocks = order_.block_of(past.stamp.warp) != order_.block_of(now.past.stamp.warp);
  const bool same_warp = past.stamp.warp == now.past.stamp.warp;
  findings_.add(
      "race",
      std::string("two threads of ") +
          (two_blocks  ? "different blocks"
           : same_warp ? "a warp"
                       : "a block") +
          " use " + name_of(now, address) + ", and nothing orders them",
      {actor_of(past, verb), actor_of(now.past, now.access->writes ? "writes" : "reads")});
}

void Checker::check_read(const Now& now, const char* address, ShadowCell& cell) {
  if (cell.under_way && findings_.is_new("order", now.past.where, cell.write.where)) {
    findings_.add("missing wait",
                  name_of(now, address) + " is read while a copy to it is under way",
                  {actor_of(cell.write, "copies"), actor_of(now.past, "reads")});
  }
  // A box or a tile is fetched whole, with rows that nobody has written and nobody will use.
  const bool whole = now.access->via == Via::kBulk || now.access->via == Via::kWgmma;
  if (!cell.written && !whole && findings_.is_new("unwritten", now.past.where, 0)) {
    findings_.add("uninitialised read",
                  name_of(now, address) + " is read, and nothing was ever written there",
                  {actor_of(now.past, "reads")});
  }
  if (!cell.under_way) check_order(now, address, cell.write, "writes");
  remember_read(now, cell);
}

void Checker::remember_read(const Now& now, ShadowCell& cell) const {
  PastAccess* slot = &cell.reads[1];
  for (PastAccess& read : cell.reads) {
    if (read.stamp.clock != 0 && read.stamp.warp != now.past.stamp.warp) continue;
    slot = &read;
    break;
  }
  *slot = now.past;
}

void Checker::check_write(const Now& now, const char* address, ShadowCell& cell) {
  if (!now.access->reads) check_order(now, address, cell.write, "writes");
  for (const PastAccess& read : cell.reads) {
    const bool own = read.stamp.clock == now.past.stamp.clock &&
                     read.stamp.warp == now.past.stamp.warp &&
                     read.stamp.lane == now.past.stamp.lane;
    if (!own) check_order(now, address, read, "reads");
  }
  cell.write = now.past;
  cell.reads = {};
  cell.written = true;
  const Via via = now.access->via;
  cell.under_way =
      now.access->space == Space::kShared && (via == Via::kCpAsync || via == Via::kBulk);
}

void Checker::async_landed(Block& block, int thread, const void* shared, std::size_t bytes) {
  const auto* address = static_cast<const char*>(shared);
  if (block.shared_offset(address) >= kSharedWindowBytes) return;
  Access landing;
  landing.space = Space::kShared;
  landing.writes = true;
  for (std::size_t i = 0; i < bytes; ++i) {
    ShadowCell& cell = cell_at(block, address + i, Space::kShared);
    cell.under_way = false;
    cell.written = true;  // a multicast from another block was not told before
    if (thread < 0) {
      if (i == 0 && cell.write.stamp.clock != 0) {
        std::uint32_t& known = landed_[cell.write.stamp.warp];
        known = std::max(known, cell.write.stamp.clock);
      }
      continue;
    }
    // It may come at any time up to here.
    const Now now{
        {order_.now(warp_of(block, thread), thread), cell.write.where, false}, &landing, &block};
    for (const PastAccess& read : cell.reads) check_order(now, address + i, read, "reads");
    cell.write.stamp = now.past.stamp;
  }
}

void Checker::host_writes(const void* to, std::size_t bytes) {
  const auto* address = static_cast<const char*>(to);
  const NamedArray* array = array_at(to);
  if (array == nullptr || array->is_written) return;
  for (std::size_t i = 0; i < bytes; ++i) {
    global_.at(reinterpret_cast<std::uintptr_t>(address + i), false).written = true;
  }
}

// ---- Order

Checker::Meeting& Checker::meeting(const Block& block, const Sync& sync) {
  return meetings_[{sync.object, sync.kind == SyncKind::kMbarrier ? -1 : block.rank()}];
}

void Checker::arrive(Block& block, int thread, const Sync& sync) {
  if (sync.kind != SyncKind::kMbarrier && sync.kind != SyncKind::kNamedBarrier) return;
  Meeting& there = meeting(block, sync);
  if (thread >= 0) {
    order_.release(warp_of(block, thread), &there.arrived);
    return;
  }
  HappensBefore::join(landed_, &there.arrived);
  landed_.clear();
}

void Checker::complete(Block& block, const Sync& sync) {
  const std::uint32_t first = warp_of(block, 0);
  const std::uint32_t warps = order_.warp_of(1, 0);
  switch (sync.kind) {
    case SyncKind::kWarp:
      order_.meet_in_warp(warp_of(block, block.current().linear));
      return;
    case SyncKind::kBlock:
      order_.meet(first, warps);
      return;
    case SyncKind::kWarpgroup:
      order_.meet(first + static_cast<std::uint32_t>(sync.object) * (kWarpgroupThreads / kLanes),
                  kWarpgroupThreads / kLanes);
      return;
    case SyncKind::kCluster:
      order_.meet(first - static_cast<std::uint32_t>(block.rank()) * warps,
                  warps * static_cast<std::uint32_t>(block.cluster().size()));
      return;
    case SyncKind::kMbarrier:
    case SyncKind::kNamedBarrier: {
      Meeting& there = meeting(block, sync);
      HappensBefore::join(there.arrived, &there.complete);
      there.arrived.clear();
    }
  }
}

void Checker::pass(Block& block, int thread, const Sync& sync) {
  if (sync.kind != SyncKind::kMbarrier && sync.kind != SyncKind::kNamedBarrier) return;
  order_.acquire(warp_of(block, thread), meeting(block, sync).complete);
}

void Checker::fence(Block& block, int thread, FenceKind kind) {
  if (kind == FenceKind::kThread) order_.fence(warp_of(block, thread));
}

}  // namespace

Observer* make_checker(const std::string& /*argument*/) {
  return new Checker;
}

}  // namespace emulator
