#include "async_copy.h"

#include <emulator/device.h>

#include <cstring>

#include "block.h"

namespace emulator {

void AsyncCopies::reset(int thread) {
  issued_ = landed_ = current_group_ = signalled_ = 0;
  thread_ = thread;
}

void AsyncCopies::push(const Copy& copy) {
  if (pending() == kCapacity) land_oldest();
  ring_[issued_ % kCapacity] = copy;
  ++issued_;
}

void AsyncCopies::issue(void* to, const void* from, Place place) {
  t_block->lines.start_copy(t_block->shared_offset(to), kBytes);
  std::memset(to, 0xff, kBytes);
  push({to, from, nullptr, place, current_group_});
}

std::uint32_t AsyncCopies::issue_arrival(Mbarrier& barrier, Place place) {
  push({nullptr, nullptr, &barrier, place, current_group_});
  signalled_ = issued_;
  return issued_;
}

void AsyncCopies::land_oldest() {
  const Copy copy = ring_[landed_ % kCapacity];
  ++landed_;
  if (copy.barrier != nullptr) {
    tell_arrival(*t_block, thread_, copy.barrier->address, copy.place);
    t_block->mbarriers.arrive(*copy.barrier, 0, copy.place);
    return;
  }
  t_block->touching = copy.place;
  if (copy.from == nullptr) {
    std::memset(copy.to, 0, kBytes);
  } else {
    std::memcpy(copy.to, copy.from, kBytes);
  }
  t_block->touching = {};
  t_block->lines.write(t_block->shared_offset(copy.to), kBytes, thread_);
  if (Observer* o = observer()) o->async_landed(*t_block, thread_, copy.to, kBytes);
}

void AsyncCopies::land_until(std::uint32_t position) {
  while (landed_ < position) land_oldest();
}

void AsyncCopies::wait(int pending_groups) {
  const auto keep = static_cast<std::uint32_t>(pending_groups);
  while (landed_ != issued_ && ring_[landed_ % kCapacity].group + keep < current_group_) {
    land_oldest();
  }
}

namespace {

bool aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % AsyncCopies::kBytes == 0;
}

// Reads both ends of the source, so that a wild one faults at the issue and not at the wait.
void probe(const void* address) {
  const auto* bytes = static_cast<const volatile unsigned char*>(address);
  (void)bytes[0];
  (void)bytes[AsyncCopies::kBytes - 1];
}

}  // namespace

void cp_async16(void* shared, const void* global, bool valid, Place place) {
  Block& block = *t_block;
  if (!aligned(shared)) misaligned("cp.async destination", shared, AsyncCopies::kBytes, place);
  if (valid && !aligned(global)) {
    misaligned("cp.async source", global, AsyncCopies::kBytes, place);
  }
  if (!block.in_shared(shared, AsyncCopies::kBytes)) {
    block.fail("out of bounds", "the destination of cp.async is not in shared memory", place);
  }
  block.touching = place;
  if (valid) probe(global);
  block.async_copies().issue(shared, valid ? global : nullptr, place);
  block.touching = {};
  if (observer() == nullptr) return;
  Access access;
  access.bytes = AsyncCopies::kBytes;
  access.via = Via::kCpAsync;
  access.place = place;
  if (valid) {
    access.address = global;
    access.reads = true;
    tell_access(access);
  }
  access.address = shared;
  access.reads = false;
  access.writes = true;
  tell_access(access);
}

void cp_async_commit() {
  t_block->async_copies().commit();
  if (Observer* o = observer()) o->async_commit(*t_block, t_block->current().linear);
}

void cp_async_wait(int pending_groups) {
  t_block->async_copies().wait(pending_groups);
  if (Observer* o = observer()) {
    o->async_wait(*t_block, t_block->current().linear, pending_groups);
  }
}

}  // namespace emulator
