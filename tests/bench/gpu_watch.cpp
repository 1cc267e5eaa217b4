#include "gpu_watch.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

namespace moe::bench {
namespace {

// As nvml.h has them.
constexpr unsigned kClockSm = 1;
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Reason {
  unsigned long long bit;
  const char* words;
};
constexpr Reason kReasons[] = {
    {0x04, "power cap: the GPU lowered its clocks to stay within its power limit"},
    {0x08, "hardware slowdown: the GPU lowered its clocks"},
    {0x20, "heat: the driver lowered the clocks"},
    {0x40, "heat: the hardware lowered the clocks"},
    {0x80, "power brake: the hardware lowered the clocks"},
};
constexpr unsigned kBusyPercent = 10;

// The first of CUDA_VISIBLE_DEVICES where that is a number.
unsigned device_index() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return visible == nullptr ? 0u : static_cast<unsigned>(std::max(0, std::atoi(visible)));
}

}  // namespace

struct GpuWatch::Library {
  void* handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*by_index)(unsigned, void**) = nullptr;
  int (*reasons)(void*, unsigned long long*) = nullptr;
  int (*clock)(void*, unsigned, unsigned*) = nullptr;
  int (*max_clock)(void*, unsigned, unsigned*) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;

  template <class Function>
  bool find(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }

  bool load() {
    handle = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    return handle != nullptr && find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(by_index, "nvmlDeviceGetHandleByIndex_v2") &&
           (find(reasons, "nvmlDeviceGetCurrentClocksEventReasons") ||
            find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons")) &&  // its older name
           find(clock, "nvmlDeviceGetClockInfo") &&
           find(max_clock, "nvmlDeviceGetMaxClockInfo") &&
           find(utilization, "nvmlDeviceGetUtilizationRates") && init() == 0;
  }
};

GpuWatch::GpuWatch() {
  library_ = new Library;
  if (!library_->load() || library_->by_index(device_index(), &device_) != 0) device_ = nullptr;
}

GpuWatch::~GpuWatch() {
  stop();
  if (library_->handle != nullptr) {
    if (library_->shutdown != nullptr) library_->shutdown();
    dlclose(library_->handle);
  }
  delete library_;
}

std::string GpuWatch::busy() const {
  Utilization use = {};
  if (device_ == nullptr || library_->utilization(device_, &use) != 0) return {};
  if (use.gpu < kBusyPercent) return {};
  return "the GPU is busy: other work uses " + std::to_string(use.gpu) +
         " % of its time, so these times are too long";
}

void GpuWatch::look() {
  unsigned long long reasons = 0;
  unsigned mhz = 0;
  if (library_->reasons(device_, &reasons) == 0) reasons_ |= reasons;
  constexpr unsigned long long kIdle = 1;
  if ((reasons & kIdle) != 0 || library_->clock(device_, kClockSm, &mhz) != 0) return;
  lowest_mhz_ = lowest_mhz_ == 0 ? mhz : std::min(lowest_mhz_, mhz);
}

void GpuWatch::start() {
  if (device_ == nullptr) return;
  library_->max_clock(device_, kClockSm, &most_mhz_);
  running_ = true;
  thread_ = std::thread([this] {
    while (running_) {
      look();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  });
}

std::vector<std::string> GpuWatch::stop() {
  if (!thread_.joinable()) return {};
  running_ = false;
  thread_.join();
  std::vector<std::string> seen;
  for (const Reason& reason : kReasons) {
    if ((reasons_ & reason.bit) != 0) seen.emplace_back(reason.words);
  }
  if (!seen.empty() && lowest_mhz_ > 0) {
    seen.back() +=
        " (lowest " + std::to_string(lowest_mhz_) + " of " + std::to_string(most_mhz_) + " MHz)";
  }
  return seen;
}

}  // namespace moe::bench
