#include "device.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "block.h"
#include "crash.h"
#include "fault.h"
#include "shared_memory.h"

namespace emulator {

namespace {

constexpr int kMaxWorkers = 16;  // each has up to 1024 guarded stacks: memory mappings are finite

int wanted_workers() {
  if (kAsan) return 1;  // __shared__ variables are plain statics there
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  const int wanted = options().workers > 0 ? options().workers : cores;
  return std::clamp(wanted, 1, kMaxWorkers);
}

double cpu_seconds(pthread_t thread) {
  clockid_t clock = 0;
  timespec time{};
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Worker {
  Block block;
  SharedMemory shared;
  std::thread thread;
};

class Device {
 public:
  explicit Device(int num_workers);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  cudaError_t run(const Grid& grid);
  int num_workers() const { return static_cast<int>(workers_.size()); }

 private:
  void work(Worker& worker, int number);
  bool run_blocks(Worker& worker);
  void stop_grid(const Fault& fault);
  uint3 block_index(std::uint64_t number) const;
  void wait_for_end(std::unique_lock<std::mutex>& lock);
  std::uint64_t total_progress() const;

  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable end_;
  std::vector<std::unique_ptr<Worker>> workers_;
  Grid grid_;
  std::uint64_t generation_ = 0;  // counts grids
  int num_invited_ = 0;           // workers that take part in this grid
  int num_active_ = 0;            // of those, how many have not ended
  bool quit_ = false;
  std::atomic<std::uint64_t> next_block_{0};
  Fault fault_;
};

Device::Device(int num_workers) {
  static std::once_flag installed;
  std::call_once(installed, install_crash_handlers);
  for (int i = 0; i < num_workers; ++i) workers_.push_back(std::make_unique<Worker>());
  for (int i = 0; i < num_workers; ++i) {
    Worker& worker = *workers_[static_cast<std::size_t>(i)];
    worker.thread = std::thread([this, &worker, i] { work(worker, i); });
  }
}

Device::~Device() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    quit_ = true;
  }
  start_.notify_all();
  for (auto& worker : workers_) worker->thread.join();
}

cudaError_t Device::run(const Grid& grid) {
  std::unique_lock<std::mutex> lock(mutex_);
  grid_ = grid;
  fault_ = {};
  next_block_ = 0;
  num_invited_ = static_cast<int>(std::min<std::uint64_t>(workers_.size(), grid.num_blocks()));
  num_active_ = num_invited_;
  ++generation_;
  start_.notify_all();
  wait_for_end(lock);
  if (fault_.error != cudaSuccess) record_fault(fault_);
  return fault_.error;
}

std::uint64_t Device::total_progress() const {
  std::uint64_t sum = 0;
  for (const auto& worker : workers_) {
    sum += worker->block.progress.load(std::memory_order_relaxed);
  }
  return sum;
}

// Waits and watches: a hang is CPU time spent without progress anywhere. (Wall time would blame the
// kernel on a busy machine.)
void Device::wait_for_end(std::unique_lock<std::mutex>& lock) {
  std::uint64_t progress = 0;
  std::vector<double> since(workers_.size());
  bool first = true;
  const auto ended = [this] { return num_active_ == 0; };
  while (!end_.wait_for(lock, std::chrono::milliseconds(100), ended)) {
    const double limit = options().hang_seconds;
    const std::uint64_t now = total_progress();
    const bool moved = first || now != progress;
    first = false;
    progress = now;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = *workers_[i];
      const double spent = cpu_seconds(worker.thread.native_handle());
      if (moved) since[i] = spent;
      if (limit > 0 && spent - since[i] > limit) {
        die_of_hang(worker.thread.native_handle(), worker.block, limit);
      }
    }
  }
}

void Device::stop_grid(const Fault& fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  next_block_ = grid_.num_blocks();
  if (fault_.error == cudaSuccess) fault_ = fault;
}

uint3 Device::block_index(std::uint64_t number) const {
  const std::uint64_t total = grid_.num_blocks();
  std::uint64_t linear = number;
  if (options().block_order == Order::kReverse) linear = total - 1 - number;
  if (options().block_order == Order::kShuffle) {
    // A walk with a step that shares no factor with the total meets every block once.
    std::uint64_t step = options().seed % total + total / 2;
    while (std::gcd(step, total) != 1) ++step;
    linear = (number * step + options().seed) % total;
  }
  const dim3 dim = grid_.grid_dim;
  return {static_cast<unsigned>(linear % dim.x), static_cast<unsigned>(linear / dim.x % dim.y),
          static_cast<unsigned>(linear / dim.x / dim.y)};
}

// Takes blocks until none is left; false after a fault.
bool Device::run_blocks(Worker& worker) {
  Block& block = worker.block;
  blockDim = grid_.block_dim;
  worker.shared.set_dynamic(grid_.smem_bytes);
  block.dynamic_shared = worker.shared.dynamic();
  block.dynamic_shared_bytes = grid_.smem_bytes;
  block.static_shared = worker.shared.static_low();
  block.static_shared_bytes = worker.shared.static_bytes();
  const bool poison = options().poison;
  const std::uint64_t total = grid_.num_blocks();
  for (;;) {
    const std::uint64_t number = next_block_.fetch_add(1);
    if (number >= total) return true;
    if (poison) worker.shared.poison();
    block.run(*grid_.call, block_index(number), grid_.grid_dim);
    if (!block.failed() && poison) {
      const std::string overrun = worker.shared.overrun();
      if (!overrun.empty()) block.set_block_fault("out of bounds", overrun);
    }
    if (block.failed()) return false;
  }
}

void Device::work(Worker& worker, int number) {
  const SignalStack signal_stack;
  const bool mapped = worker.shared.map();
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return quit_ || (generation_ != seen && number < num_invited_); });
      if (quit_) return;
      seen = generation_;
    }
    if (!mapped || !worker.block.prepare(grid_.block_dim)) {
      stop_grid({cudaErrorMemoryAllocation, "launch: no memory for the stacks of a block"});
    } else if (!run_blocks(worker)) {
      stop_grid(worker.block.fault());
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--num_active_ == 0) end_.notify_all();
  }
}

// The one device of this process. A child after fork() has none of its parent's threads and starts
// anew; what it inherited is left alone.
Device& device() {
  static Device* current = nullptr;
  static pid_t owner = 0;
  if (current != nullptr && owner == getpid() && current->num_workers() != wanted_workers()) {
    delete current;
    current = nullptr;
  }
  if (current == nullptr || owner != getpid()) {
    current = new Device(wanted_workers());
    owner = getpid();
  }
  return *current;
}

}  // namespace

cudaError_t run_grid(const Grid& grid) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> lock(one_at_a_time);
  return device().run(grid);
}

}  // namespace emulator
