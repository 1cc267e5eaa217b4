// What a running kernel does, told to whoever watches: each access to shared and global memory and
// each synchronisation, in the order in which the emulated threads do them.
//
// Only a build with EMULATOR_TRACED tells (the tree cpu-traced): kernel files are compiled there
// with -fsanitize=thread, whose calls land in thread_hooks.cpp instead of the sanitizer's runtime.
// In other builds observer() is a constant null and nothing of this is left.
//
// While somebody watches there is one OS thread for blocks, so that a run is repeatable and an
// observer needs no locks.
#pragma once

#include <emulator/device.h>
#include <emulator/place.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace emulator {

class Block;
struct Grid;

enum class Space : std::uint8_t { kShared, kGlobal };

// By what the bytes are moved. All but kPlain and kAtomic are functions of the emulator, which know
// the line that called them; the other two have a pc.
enum class Via : std::uint8_t {
  kPlain,     // a load or store of the kernel
  kAtomic,    // read, write or both in one step
  kCpAsync,   // told at the issue; a write to shared memory is good from async_landed() on
  kLdmatrix,  // 16 bytes for one of the rows
  kStmatrix,
  kWgmma,  // 16 bytes of a tile in shared memory, told when the operation is issued
  kBulk,   // a row of a box: told at the issue (loads), at the read or write (stores)
};

enum class MemoryOrder : std::uint8_t { kRelaxed, kAcquire, kRelease, kAcquireRelease };

struct Access {
  const void* address = nullptr;
  std::uint32_t bytes = 0;
  Space space = Space::kGlobal;
  Via via = Via::kPlain;
  bool reads = false;
  bool writes = false;
  MemoryOrder order = MemoryOrder::kRelaxed;  // of an atomic
  Place place;                                // line 0: see pc
  std::uintptr_t pc = 0;                      // a return address in this process
};

enum class SyncKind : std::uint8_t {
  kBlock,         // __syncthreads and its kin
  kNamedBarrier,  // object is its number, 1 to 15
  kWarp,          // __syncwarp, shuffles, ldmatrix, mma and the like: `mask` meets
  kMbarrier,      // object is its address
  kCluster,
  kWarpgroup,  // wgmma_wait
};

// Where threads meet. The object tells apart what is in use at a time within one block (mbarriers:
// within a cluster).
struct Sync {
  SyncKind kind = SyncKind::kBlock;
  Operation operation = Operation::kNone;
  std::uintptr_t object = 0;
  unsigned mask = 0;
  Place place;
};

enum class FenceKind : std::uint8_t { kThread, kProxyAsync, kMbarrierInit };

class Observer {
 public:
  virtual ~Observer() = default;

  // ---- Kernels and blocks. After a fault in a block there is no block_ends() for it.
  virtual void launch_begins(const Grid& /*grid*/) {}
  virtual void launch_ends(bool /*faulted*/) {}
  // Copies and fills between kernels.
  virtual void host_writes(const void* /*to*/, std::size_t /*bytes*/) {}
  virtual void block_begins(Block& /*block*/) {}
  virtual void block_ends(Block& /*block*/) {}
  virtual void thread_ends(Block& /*block*/, int /*thread*/) {}

  // ---- Memory. `thread` is the linear index in the block; of what a copy engine does, that of
  // the thread that asked for it.
  virtual void access(Block& /*block*/, int /*thread*/, const Access& /*access*/) {}
  // cp.async and bulk loads: the bytes have arrived, for `thread`'s wait or, at an mbarrier (a bulk
  // load: thread -1), right before the arrive() that stands for them.
  virtual void async_landed(Block& /*block*/,
                            int /*thread*/,
                            const void* /*shared*/,
                            std::size_t /*bytes*/) {}
  // One wgmma of a warpgroup, told by its first thread; m is 64, k 16 or (e4m3) 32.
  virtual void wgmma_issued(
      Block& /*block*/, int /*thread*/, int /*n*/, bool /*is_e4m3*/, Place /*place*/) {}
  virtual void async_commit(Block& /*block*/, int /*thread*/) {}
  virtual void async_wait(Block& /*block*/, int /*thread*/, int /*pending_groups*/) {}

  // ---- Order. Each thread arrives (releases what it did), the last arrival completes the phase,
  // then each thread that waits passes (acquires what the arrivals of that phase released). A
  // thread of named_barrier_arrive() or mbarrier_arrive() never passes; one that finds a phase of
  // an mbarrier complete passes without arriving. Bulk loads arrive as thread -1. Of an mbarrier,
  // `block` is the thread's own.
  virtual void arrive(Block& /*block*/, int /*thread*/, const Sync& /*sync*/) {}
  virtual void complete(Block& /*block*/, const Sync& /*sync*/) {}
  virtual void pass(Block& /*block*/, int /*thread*/, const Sync& /*sync*/) {}
  virtual void fence(Block& /*block*/, int /*thread*/, FenceKind /*kind*/) {}
};

// The observer of this process, null for none. Not to be changed while a kernel runs.
void observe(Observer* observer);

#ifdef EMULATOR_TRACED
inline constexpr bool kTraced = true;
extern Observer* g_observer;  // not thread-local: those are poisoned before each block
inline Observer* observer() {
  return g_observer;
}
#else
inline constexpr bool kTraced = false;
constexpr Observer* observer() {
  return nullptr;
}
#endif

// Tells the observer of an access by the running thread of this OS thread, if it is one to shared
// or global memory: stacks, constants and the built-in variables are not. Nothing outside kernels.
void tell_access(Access access);

// A device allocation, as of the launch that runs.
struct DeviceRange {
  std::uintptr_t low = 0;
  std::size_t bytes = 0;
};
// The one that the address lies in, null if none.
const DeviceRange* device_range(const void* address);

// Learns them; a launch begins so.
void take_stock_of_memory();

// All allocations, by address (memory.cpp).
std::vector<DeviceRange> device_allocations();

// The pc as `addr2line -e PROGRAM` wants it.
std::uintptr_t program_offset(std::uintptr_t pc);

}  // namespace emulator
