// gpu_watch.h: whether the GPU is somebody else's too, and whether it runs slower than it can while
// something is timed. Asks NVML, which comes with the driver; without it nothing is known.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace moe::bench {

class GpuWatch {
 public:
  GpuWatch();
  ~GpuWatch();
  GpuWatch(const GpuWatch&) = delete;
  GpuWatch& operator=(const GpuWatch&) = delete;

  // Before anything runs: "the GPU is busy: ...", or "".
  std::string busy() const;

  // Looks at the clocks until stop(), which says what was seen: "power cap: ...", or nothing.
  void start();
  std::vector<std::string> stop();

 private:
  struct Library;
  void look();

  Library* library_ = nullptr;
  void* device_ = nullptr;
  std::thread thread_;
  std::atomic<bool> running_{false};
  unsigned long long reasons_ = 0;
  unsigned lowest_mhz_ = 0;
  unsigned most_mhz_ = 0;
};

}  // namespace moe::bench
