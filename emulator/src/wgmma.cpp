#include "wgmma.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "block.h"

namespace emulator {

namespace {

constexpr std::uint32_t kPoison = 0xffffffffu;

bool same(const WgmmaCall& a, const WgmmaCall& b) {
  return a.a == b.a && a.b == b.b && a.n == b.n && a.accumulate == b.accumulate &&
         a.a_is_mn_major == b.a_is_mn_major && a.b_is_mn_major == b.b_is_mn_major &&
         a.is_e4m3 == b.is_e4m3 && (a.a_registers == nullptr) == (b.a_registers == nullptr);
}

// Thread t = 32w + 4g + q holds d[4j + 2h + e]: row 16w + g + 8h, column 8j + 2q + e.
float* pair_of(Accumulators& all, int thread, int j, int h) {
  const int row = thread / 32 * 16 + thread % 32 / 4 + 8 * h;
  return all.rows.data() + row * all.n + 8 * j + thread % 4 * 2;
}

// Two floats as they are: a NaN equals itself.
std::uint64_t bits_of(const float* pair) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, pair, sizeof bits);
  return bits;
}

Warpgroup& own_warpgroup(const char* function, Place place) {
  Block& block = *t_block;
  const int thread = block.current().linear;
  const int first = thread / kWarpgroupThreads * kWarpgroupThreads;
  if (first + kWarpgroupThreads > block.num_threads()) {
    block.fail("divergence",
               std::string(function) + " needs all 128 threads of the warpgroup; the block has " +
                   std::to_string(block.num_threads() - first) + " of this one",
               place);
  }
  return block.warpgroup(thread);
}

}  // namespace

void Warpgroup::reset() {
  if (time_ == 0 && waiting_threads_ == 0) return;  // the last block had no use for it
  operations_.clear();
  accumulators_.clear();
  done_ = 0;
  time_ = 0;
  issued_ = {};
  commits_ = {};
  fences_ = {};
  waiting_threads_ = 0;
  waiting_ = {};
}

// The operation that this call is the thread's part of: the first thread to come makes it.
WgmmaOperation& Warpgroup::operation_of(Block& block,
                                        int thread,
                                        const WgmmaCall& call,
                                        Place place) {
  const std::size_t number = issued_[index(thread)]++;
  if (number - done_ < operations_.size()) {
    WgmmaOperation& operation = operations_[number - done_];
    if (operation.place.line != place.line || operation.group != commits_[index(thread)]) {
      std::string sentence =
          "the threads of a warpgroup execute different wgmmas; another one executed that at " +
          describe(operation.place);
      block.fail("divergence", std::move(sentence), place);
    }
    if (!same(operation.call, call)) {
      block.fail("divergence", "the threads of a warpgroup give one wgmma different descriptors",
                 place);
    }
    return operation;
  }
  operations_.emplace_back();
  WgmmaOperation& operation = operations_.back();
  operation.call = call;
  operation.place = place;
  operation.group = commits_[index(thread)];
  operation.accumulators = find_accumulators(thread, call);
  ++accumulators_[operation.accumulators].operations;
  if (call.a_registers != nullptr) operation.a_registers.resize(kWarpgroupThreads * 4);
  std::vector<TilePiece>& pieces = block.tile_pieces;
  const int first = thread / kWarpgroupThreads * kWarpgroupThreads;
  if (call.a_registers == nullptr) {
    list_pieces(call.a, kWgmmaRows, call.a_is_mn_major, &pieces, place);
    operation.hash = hash_tile(block, pieces, first, true, place);
  }
  list_pieces(call.b, call.n, call.b_is_mn_major, &pieces, place);
  operation.hash ^= hash_tile(block, pieces, first, true, place) * 31;
  if (Observer* o = observer()) o->wgmma_issued(block, thread, call.n, call.is_e4m3, place);
  return operation;
}

std::size_t Warpgroup::find_accumulators(int thread, const WgmmaCall& call) {
  const std::size_t t = index(thread);
  std::size_t unused = accumulators_.size();
  for (std::size_t i = 0; i < accumulators_.size(); ++i) {
    Accumulators& all = accumulators_[i];
    if (all.d[t] == call.d && all.n == call.n) return i;
    if (all.operations == 0) unused = i;
  }
  if (unused == accumulators_.size() || accumulators_.size() < 4) {
    unused = accumulators_.size();
    accumulators_.emplace_back();
  }
  Accumulators& made = accumulators_[unused];
  made.n = call.n;
  made.were_written = false;
  made.d = {};
  made.taken = {};
  made.rows.resize(static_cast<std::size_t>(call.n) * kWgmmaRows);
  return unused;
}

// The thread's registers go to `rows`, and are NaN from now on.
void Warpgroup::take_accumulators(
    Block& block, Accumulators& all, int thread, float* d, Place place) {
  const std::size_t t = index(thread);
  if (all.d[t] == nullptr) all.d[t] = d;
  if (all.d[t] != d) {
    block.fail("divergence", "the threads of a warpgroup give one wgmma different accumulators",
               place);
  }
  if (all.taken[t]) return;
  all.taken[t] = true;
  bool changed = false;
  for (int j = 0; j < all.n / 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      float* pair = pair_of(all, static_cast<int>(t), j, h);
      changed |= bits_of(pair) != bits_of(d + 4 * j + 2 * h);
      std::memcpy(pair, d + 4 * j + 2 * h, 2 * sizeof *pair);
    }
  }
  const bool known = all.were_written;
  if (fences_[t] == 0 || (known && changed && fences_[t] < all.written)) {
    block.fail("missing fence",
               "wgmma without wgmma_fence() after its registers were written by other instructions",
               place);
  }
  std::memset(d, 0xff, static_cast<std::size_t>(all.n / 2) * sizeof *d);
}

void Warpgroup::give_accumulators(Block& block, Accumulators& all, Place place) {
  for (int t = 0; t < kWarpgroupThreads; ++t) {
    float* d = all.d[index(t)];
    all.taken[index(t)] = false;
    for (int i = 0; i < all.n / 2; ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, d + i, sizeof bits);
      if (bits != kPoison) {
        block.fail("missing wait", "the accumulators of a wgmma were written before wgmma_wait()",
                   place);
      }
    }
    for (int j = 0; j < all.n / 8; ++j) {
      for (int h = 0; h < 2; ++h) {
        std::memcpy(d + 4 * j + 2 * h, pair_of(all, t, j, h), 2 * sizeof *d);
      }
    }
  }
  all.were_written = true;
  all.written = ++time_;
}

void Warpgroup::issue(Block& block, int thread, const WgmmaCall& call, Place place) {
  if (time_ == 0) time_ = 1;
  WgmmaOperation& operation = operation_of(block, thread, call, place);
  take_accumulators(block, accumulators_[operation.accumulators], thread, call.d, place);
  if (call.a_registers != nullptr) {
    std::memcpy(&operation.a_registers[index(thread) * 4], call.a_registers,
                4 * sizeof *call.a_registers);
  }
  ++operation.arrived;
}

// The 128 threads meet; the last one executes what was waited for.
void Warpgroup::wait(Block& block, int thread, int pending_groups, Place place) {
  const std::size_t t = index(thread);
  if (waiting_threads_ == 0) {
    waits_for_ = pending_groups;
    wait_place_ = place;
  } else if (waits_for_ != pending_groups || wait_place_.line != place.line) {
    std::string sentence =
        "the threads of a warpgroup wait at different places for their wgmmas; another one "
        "at " +
        describe(wait_place_);
    block.fail("divergence", std::move(sentence), place);
  }
  if (pending_groups == 0 && pending(thread) != 0 &&
      operations_[issued_[t] - done_ - 1].group == commits_[t]) {
    block.fail("missing commit", "wgmma_wait<0>() while no wgmma_commit() closed the last group",
               operations_[issued_[t] - done_ - 1].place);
  }
  const Sync sync{SyncKind::kWarpgroup, Operation::kWgmmaWait,
                  static_cast<std::uintptr_t>(thread / kWarpgroupThreads), 0, place};
  if (Observer* o = observer()) o->arrive(block, thread, sync);
  if (++waiting_threads_ < kWarpgroupThreads) {
    block.wait_in(waiting_, Operation::kWgmmaWait, place);
    if (Observer* o = observer()) o->pass(block, thread, sync);
    return;
  }
  // wgmma runs as late as it may: who was told too early that a tile is free writes it now.
  block.let_others_run(Operation::kWgmmaWait, place);
  waiting_threads_ = 0;
  for (int other = 0; other < kWarpgroupThreads; ++other) {
    if (issued_[index(other)] == issued_[t] && commits_[index(other)] == commits_[t]) continue;
    block.fail("divergence", "the threads of a warpgroup issued different numbers of wgmmas",
               place);
  }
  while (!operations_.empty() &&
         operations_.front().group + static_cast<std::uint32_t>(pending_groups) < commits_[t]) {
    execute(block, operations_.front());
    Accumulators& all = accumulators_[operations_.front().accumulators];
    operations_.pop_front();
    ++done_;
    if (--all.operations == 0) give_accumulators(block, all, place);
  }
  if (Observer* o = observer()) {
    o->complete(block, sync);
    o->pass(block, thread, sync);
  }
  block.wake(waiting_);
}

void Warpgroup::execute(Block& block, WgmmaOperation& operation) {
  const WgmmaCall& call = operation.call;
  std::vector<TilePiece>& pieces = block.tile_pieces;
  std::uint32_t hash = 0;
  if (call.a_registers == nullptr) {
    list_pieces(call.a, kWgmmaRows, call.a_is_mn_major, &pieces, operation.place);
    hash = hash_tile(block, pieces, 0, false, operation.place);
  }
  list_pieces(call.b, call.n, call.b_is_mn_major, &pieces, operation.place);
  hash ^= hash_tile(block, pieces, 0, false, operation.place) * 31;
  if (hash != operation.hash) {
    block.fail("missing wait",
               "a tile of a wgmma was overwritten before wgmma_wait() said that it was read",
               operation.place);
  }
  Accumulators& all = accumulators_[operation.accumulators];
  if (!call.accumulate) std::fill(all.rows.begin(), all.rows.end(), 0.0f);
  multiply(block, operation, all.rows.data());
}

// ---- What device code calls.

void wgmma(const WgmmaCall& call, Place place) {
  Block& block = *t_block;
  own_warpgroup("wgmma", place).issue(block, block.current().linear, call, place);
}

void wgmma_fence() {
  Block& block = *t_block;
  const int thread = block.current().linear;
  block.warpgroup(thread).fence(thread);
}

void wgmma_commit() {
  Block& block = *t_block;
  const int thread = block.current().linear;
  block.warpgroup(thread).commit(thread);
}

void wgmma_wait(int pending_groups, Place place) {
  Block& block = *t_block;
  own_warpgroup("wgmma_wait", place).wait(block, block.current().linear, pending_groups, place);
}

}  // namespace emulator
