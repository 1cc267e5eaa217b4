#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "cluster.h"

namespace emulator {

bool Block::prepare(dim3 block_dim) {
  num_threads_ = static_cast<int>(block_dim.x * block_dim.y * block_dim.z);
  const auto count = static_cast<std::size_t>(num_threads_);
  const std::size_t factor = kAsan ? 4 : 1;  // its frames are larger
  if (!stacks_.reserve(num_threads_, options().stack_bytes * factor)) return false;
  if (fibers_.size() < count) {
    fibers_.resize(count);
    copies_.resize(count);
    warps_.resize((count + kLanes - 1) / kLanes);
  }
  if (own_context_.stack_low == nullptr) describe_own_stack(own_context_);
  return true;
}

std::uint32_t Block::random() {
  random_state_ ^= random_state_ << 13;
  random_state_ ^= random_state_ >> 7;
  random_state_ ^= random_state_ << 17;
  return static_cast<std::uint32_t>(random_state_ >> 16);
}

void Block::start(
    const KernelCall& call, uint3 block_index, dim3 grid_dim, Cluster& cluster, int rank) {
  call_ = &call;
  index_ = block_index;
  cluster_ = &cluster;
  rank_ = rank;
  gridDim = grid_dim;
  fault_ = {};
  ready_ = {};
  barrier_ = {};
  cluster_waiting = {};
  touching = {};
  mbarriers.reset();
  bulk_copies.reset();
  named_barriers.reset();
  register_budget.reset(num_threads_);
  lines.reset(num_threads_);
  for (Warpgroup& warpgroup : warpgroups_) warpgroup.reset();
  refusals_ = 0;
  wants_to_settle_ = false;
  ticks = 0;
  live_ = num_threads_;
  order_ = options().order;
  // A different order in each block, the same in each run.
  random_state_ = (options().seed * 0x9e3779b97f4a7c15u) ^
                  (block_index.x * 0x85ebca6bu + block_index.y * 0xc2b2ae35u +
                   block_index.z * 0x27d4eb2fu + 1u);
  if (random_state_ == 0) random_state_ = 1;
  start_threads();
  advance();
}

void Block::resume() {
  t_block = this;
  blockIdx = index_;
  in_thread_ = true;
  current_ = ready_.pop();
  current_->state = State::kReady;
  threadIdx = current_->index;
  switch_context(own_context_, current_->context);
  in_thread_ = false;
  t_block = nullptr;
}

void Block::start_threads() {
  for (std::size_t w = 0; w * kLanes < static_cast<std::size_t>(num_threads_); ++w) {
    const int lanes = num_threads_ - static_cast<int>(w) * kLanes;
    warps_[w].live = lanes >= kLanes ? 0xffffffffu : (1u << lanes) - 1u;
    warps_[w].num_collectives = 0;
  }
  std::array<Fiber*, kMaxThreads> order;
  for (int i = 0; i < num_threads_; ++i) {
    const auto linear = static_cast<unsigned>(i);
    Fiber& fiber = fibers_[linear];
    fiber.linear = i;
    fiber.index = {linear % blockDim.x, linear / blockDim.x % blockDim.y,
                   linear / (blockDim.x * blockDim.y)};
    fiber.state = State::kReady;
    fiber.operation = Operation::kNone;
    fiber.context.stack_low = stacks_.low(i);
    fiber.context.stack_bytes = stacks_.stack_bytes();
    // AddressSanitizer's marks of frames that were never left: of thread_main() at least.
    constexpr std::size_t kEntryBytes = 8192;
    const std::size_t marked = fiber.stack_in_use ? stacks_.stack_bytes() : kEntryBytes;
    asan_unpoison(stacks_.low(i) + stacks_.stack_bytes() - marked, marked);
    fiber.stack_in_use = true;
    prepare_context(fiber.context, stacks_.top(i));
    copies_[linear].reset(i);
    const int rank = order_ == Order::kReverse ? num_threads_ - 1 - i : i;
    order[static_cast<std::size_t>(rank)] = &fiber;
  }
  if (order_ == Order::kShuffle) {
    for (auto i = static_cast<std::uint32_t>(num_threads_); i > 1; --i) {
      std::swap(order[i - 1], order[random() % i]);
    }
  }
  for (int i = 0; i < num_threads_; ++i) ready_.push_back(order[static_cast<std::size_t>(i)]);
}

int Block::sync_threads(Operation operation, bool predicate, Place place) {
  Barrier& barrier = barrier_;
  if (barrier.arrived == 0) {
    barrier.operation = operation;
    barrier.place = place;
    barrier.count = 0;
  } else if (barrier.operation != operation || barrier.place.line != place.line ||
             (barrier.place.file != place.file &&
              std::strcmp(barrier.place.file, place.file) != 0)) {
    wait_at(operation, place);
    fail("divergence", "threads of one block wait at different __syncthreads()", place, true);
  }
  if (live_ != num_threads_) {
    wait_at(operation, place);
    fail("divergence",
         std::to_string(num_threads_ - live_) + " of " + std::to_string(num_threads_) +
             " threads returned from the kernel before its __syncthreads()",
         place, true);
  }
  barrier.count += predicate ? 1 : 0;
  const Sync sync{SyncKind::kBlock, operation, 0, 0, place};
  if (Observer* o = observer()) o->arrive(*this, current_->linear, sync);
  if (++barrier.arrived == live_) {
    if (Observer* o = observer()) o->complete(*this, sync);
    release_barrier();
  } else {
    wait_at(operation, place);
    barrier.waiting.push_back(current_);
    switch_to_next(false);
  }
  if (Observer* o = observer()) o->pass(*this, current_->linear, sync);
  return barrier.result;
}

// The last thread to arrive goes on at once. In shuffled order all of them are queued anew.
void Block::release_barrier() {
  Barrier& barrier = barrier_;
  switch (barrier.operation) {
    case Operation::kSyncThreadsCount:
      barrier.result = barrier.count;
      break;
    case Operation::kSyncThreadsAnd:
      barrier.result = barrier.count == barrier.arrived ? 1 : 0;
      break;
    case Operation::kSyncThreadsOr:
      barrier.result = barrier.count > 0 ? 1 : 0;
      break;
    default:
      barrier.result = 0;
  }
  barrier.arrived = 0;
  advance();
  if (order_ != Order::kShuffle) {
    ready_.splice_back(barrier.waiting);
    return;
  }
  std::array<Fiber*, kMaxThreads> order;
  std::uint32_t count = 0;
  while (Fiber* fiber = barrier.waiting.pop()) order[count++] = fiber;
  order[count++] = current_;
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  for (std::uint32_t i = 0; i < count; ++i) ready_.push_back(order[i]);
  switch_to_next(false);
}

void context_main() {
  t_block->thread_main();
}

void Block::thread_main() {
  std::string thrown;
  try {
    call_->run_thread();
  } catch (const std::exception& error) {
    thrown = std::string("thrown in a kernel: ") + error.what();
  } catch (...) {
    thrown = "thrown in a kernel, of a type that is no std::exception";
  }
  Fiber& self = *current_;
  if (!thrown.empty()) fail_at("exception", std::move(thrown), self);
  check_copies_of(self);
  if (Observer* o = observer()) o->thread_ends(*this, self.linear);
  self.state = State::kReturned;
  self.stack_in_use = false;
  --live_;
  advance();
  leave_warp(self);
  leave_barrier();
  cluster_->release_if_complete();
  switch_to_next(true);
  std::abort();
}

// A block's threads must all reach a barrier: one that returned never will.
void Block::leave_barrier() {
  if (barrier_.arrived == 0) return;
  const Barrier& barrier = barrier_;
  set_fault("divergence",
            "a thread returned while others wait at " + std::string(name_of(barrier.operation)));
  fault_.text += "\n  in " + describe_thread(blockIdx, threadIdx) + describe_states();
  abandon();
}

// Gives the block up: control goes back to run(), and no thread of the block is resumed.
void Block::abandon() {
  switch_context(current_->context, own_context_, true);
  std::abort();
}

void Block::set_fault(const char* kind, const std::string& sentence) {
  fault_.error = cudaErrorLaunchFailure;
  if (std::strcmp(kind, "assert") == 0) fault_.error = cudaErrorAssert;
  if (std::strcmp(kind, "misaligned") == 0) fault_.error = cudaErrorMisalignedAddress;
  if (std::strcmp(kind, "bulk copy") == 0) fault_.error = cudaErrorIllegalInstruction;
  fault_.text = std::string(kind) + ": " + sentence;
}

void Block::set_block_fault(const char* kind, const std::string& sentence) {
  set_fault(kind, sentence);
  fault_.text += "\n  in " + describe_block(index_);
}

void Block::fail(const char* kind, std::string&& sentence, Place place, bool with_states) {
  set_fault(kind, sentence);
  std::string().swap(sentence);
  fault_.text += "\n  in " + describe_thread(blockIdx, threadIdx) + " at " + describe(place);
  if (with_states) fault_.text += describe_states();
  abandon();
}

void Block::fail_at(const char* kind, std::string&& sentence, const Fiber& fiber) {
  set_fault(kind, sentence);
  std::string().swap(sentence);
  fault_.text += "\n  in " + describe_thread(blockIdx, fiber.index);
  if (fiber.place.line != 0) fault_.text += " at " + describe(fiber.place);
  abandon();
}

void Block::report(const char* kind, std::string&& sentence, Place place) {
  if (in_thread_) fail(kind, std::move(sentence), place);
  if (failed()) return;
  set_block_fault(kind, sentence);
  fault_.text += " at " + describe(place);
}

bool Block::in_shared(const void* address, std::size_t bytes) const {
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const auto inside = [start, bytes](const void* low, std::size_t size) {
    const auto first = reinterpret_cast<std::uintptr_t>(low);
    return start >= first && start - first <= size && size - (start - first) >= bytes;
  };
  return static_shared == nullptr || inside(static_shared, static_shared_bytes) ||
         inside(dynamic_shared, dynamic_shared_bytes);
}

std::string Block::describe_states() const {
  struct Group {
    std::string where;
    int count;
    uint3 first;
  };
  std::vector<Group> groups;
  for (int i = 0; i < num_threads_; ++i) {
    const Fiber& fiber = fibers_[static_cast<std::size_t>(i)];
    std::string where = "can run";
    if (fiber.state == State::kReturned) where = "returned from the kernel";
    if (fiber.state == State::kWaiting) {
      where = describe_wait(fiber);
    }
    Group* found = nullptr;
    for (Group& group : groups) {
      if (group.where == where) found = &group;
    }
    if (found != nullptr) {
      ++found->count;
    } else {
      groups.push_back({where, 1, fiber.index});
    }
  }
  std::string text;
  for (const Group& group : groups) {
    text += "\n  " + std::to_string(group.count) + (group.count == 1 ? " thread, " : " threads, ") +
            "first thread (" + std::to_string(group.first.x) + "," + std::to_string(group.first.y) +
            "," + std::to_string(group.first.z) + "): " + group.where;
  }
  return text;
}

// ---- What device code calls.

int sync_threads(Operation operation, bool predicate, Place place) {
  return t_block->sync_threads(operation, predicate, place);
}

void nanosleep(Place place) {
  t_block->poll(Operation::kNanosleep, place);
}

unsigned char* dynamic_shared() {
  return t_block->dynamic_shared;
}

// Not time: it grows with each look, and is the same in each run.
long long clock() {
  constexpr long long kCycles = 40;
  return t_block->ticks += kCycles;
}

void trap(Place place) {
  t_block->fail("exception", "the kernel called __trap()", place);
}

void misaligned(const char* function, const void* address, std::size_t alignment, Place place) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: address %p is not a multiple of %zu", function, address,
                alignment);
  t_block->fail("misaligned", text, place);
}

}  // namespace emulator

// glibc's hook behind assert(): inside a kernel it ends the block instead of the process.
// (Declared here because <cassert> does so only without NDEBUG.)
extern "C" [[noreturn]] void __assert_fail(const char* expression,
                                           const char* file,
                                           unsigned int line,
                                           const char* function) noexcept {
  if (emulator::t_block != nullptr) {
    emulator::t_block->fail("assert", std::string(expression) + " is false in " + function,
                            {file, static_cast<int>(line)});
  }
  std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
  std::abort();
}
