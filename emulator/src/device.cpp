#include "device.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>
#include <vector>

#include "block.h"
#include "cluster.h"
#include "crash.h"
#include "fault.h"
#include "shared_memory.h"

namespace emulator {

namespace {

constexpr double kLastChanceSeconds = 0.1;
constexpr int kMaxWorkers = 16;  // each has up to 1024 guarded stacks: memory mappings are finite

int wanted_workers() {
  if (kAsan) return 1;  // __shared__ variables are plain statics there
  if (observer() != nullptr) return 1;
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
  std::array<Block, kMaxClusterBlocks> blocks;
  std::array<SharedMemory, kMaxClusterBlocks> shared;
  Cluster cluster;
  std::thread thread;

  // Room for the blocks that run together; false if there is no memory for them.
  bool prepare(const Grid& grid);
  // The block to show in a report on a hang.
  const Block& unfinished() const;
};

bool Worker::prepare(const Grid& grid) {
  std::vector<Block*> together;
  for (std::size_t i = 0; i < static_cast<std::size_t>(grid.cluster_size); ++i) {
    if (!shared[i].map() || !blocks[i].prepare(grid.block_dim)) return false;
    shared[i].set_dynamic(grid.smem_bytes);
    blocks[i].shared_window = shared[i].window();
    blocks[i].dynamic_shared = shared[i].dynamic();
    blocks[i].dynamic_shared_bytes = grid.smem_bytes;
    // Blocks of one OS thread can't each have their own.
    blocks[i].static_shared = shared[i].static_low();
    blocks[i].static_shared_bytes = grid.cluster_size == 1 ? shared[i].static_bytes() : 0;
    blocks[i].give_up = false;
    together.push_back(&blocks[i]);
  }
  cluster.set_blocks(together);
  return true;
}

const Block& Worker::unfinished() const {
  const auto found = std::find_if(blocks.begin(), blocks.end(),
                                  [](const Block& block) { return block.live() > 0; });
  return found == blocks.end() ? blocks.front() : *found;
}

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
  bool run_blocks(Worker& worker, Fault* fault);
  bool check_shared(Worker& worker, Fault* fault) const;
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
  // Stacks of whole clusters: mappings are finite.
  const std::uint64_t most = std::max<std::uint64_t>(kMaxWorkers / grid.cluster_size, 1);
  num_invited_ =
      static_cast<int>(std::min({std::uint64_t{workers_.size()}, most, grid.num_clusters()}));
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
    for (const Block& block : worker->blocks) {
      sum += block.progress.load(std::memory_order_relaxed);
    }
  }
  return sum;
}

// Waits and watches: a hang is CPU time spent without progress anywhere. (Wall time would blame the
// kernel on a busy machine.)
void Device::wait_for_end(std::unique_lock<std::mutex>& lock) {
  std::uint64_t progress = 0;
  std::vector<double> since(workers_.size());
  bool first = true;
  bool gave_up = false;
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
      if (limit <= 0 || spent - since[i] <= limit) continue;
      if (gave_up) die_of_hang(worker.thread.native_handle(), worker.unfinished(), limit);
      // Threads that poll can still end with a report; others get no second chance.
      gave_up = true;
      for (const auto& any : workers_) {
        for (Block& block : any->blocks) block.give_up = true;
      }
      for (double& time : since) time += kLastChanceSeconds;
    }
  }
}

void Device::stop_grid(const Fault& fault) {
  const std::lock_guard<std::mutex> lock(mutex_);
  next_block_ = grid_.num_clusters();
  if (fault_.error == cudaSuccess) fault_ = fault;
}

// The first block of a cluster.
uint3 Device::block_index(std::uint64_t number) const {
  const std::uint64_t total = grid_.num_clusters();
  std::uint64_t linear = number;
  if (options().block_order == Order::kReverse) linear = total - 1 - number;
  if (options().block_order == Order::kShuffle) {
    // A walk with a step that shares no factor with the total meets every block once.
    std::uint64_t step = options().seed % total + total / 2;
    while (std::gcd(step, total) != 1) ++step;
    linear = (number * step + options().seed) % total;
  }
  linear *= static_cast<std::uint64_t>(grid_.cluster_size);  // which divides gridDim.x
  const dim3 dim = grid_.grid_dim;
  return {static_cast<unsigned>(linear % dim.x), static_cast<unsigned>(linear / dim.x % dim.y),
          static_cast<unsigned>(linear / dim.x / dim.y)};
}

// What shared memory shows after a block: writes behind it; of a cluster, static variables in use.
bool Device::check_shared(Worker& worker, Fault* fault) const {
  for (int i = 0; i < grid_.cluster_size; ++i) {
    const std::string overrun = worker.shared[static_cast<std::size_t>(i)].overrun();
    if (overrun.empty()) continue;
    worker.cluster.block(i).set_block_fault("out of bounds", overrun);
    *fault = worker.cluster.block(i).fault();
    return false;
  }
  return true;
}

// Takes clusters of blocks until none is left; false after a fault.
bool Device::run_blocks(Worker& worker, Fault* fault) {
  blockDim = grid_.block_dim;
  const bool poison = options().poison;
  const bool in_clusters = grid_.cluster_size > 1;
  const std::uint64_t total = grid_.num_clusters();
  for (;;) {
    const std::uint64_t number = next_block_.fetch_add(1);
    if (number >= total) return true;
    for (int i = 0; poison && i < grid_.cluster_size; ++i) {
      worker.shared[static_cast<std::size_t>(i)].poison();
    }
    if (poison || in_clusters) worker.shared[0].poison_static();
    const bool ended = worker.cluster.run(*grid_.call, block_index(number), grid_.grid_dim);
    if (in_clusters && worker.shared[0].wrote_static()) {
      *fault = {cudaErrorLaunchFailure,
                "cluster: a kernel that is launched in clusters may use dynamic shared memory "
                "only here, not __shared__ variables"};
      return false;
    }
    if (!ended) {
      *fault = worker.cluster.failed()->fault();
      return false;
    }
    if (poison && !check_shared(worker, fault)) return false;
  }
}

void Device::work(Worker& worker, int number) {
  const SignalStack signal_stack;
  std::uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return quit_ || (generation_ != seen && number < num_invited_); });
      if (quit_) return;
      seen = generation_;
    }
    Fault fault;
    if (!worker.prepare(grid_)) {
      stop_grid({cudaErrorMemoryAllocation, "launch: no memory for the stacks of a block"});
    } else if (!run_blocks(worker, &fault)) {
      stop_grid(fault);
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
  Observer* const watching = observer();
  if (watching == nullptr) return device().run(grid);
  take_stock_of_memory();
  watching->launch_begins(grid);
  const cudaError_t error = device().run(grid);
  watching->launch_ends(error != cudaSuccess);
  return error;
}

}  // namespace emulator
