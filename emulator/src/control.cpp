// Options, the sticky fault and the list of regions left to do.
#include <emulator/control.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "fault.h"

namespace emulator {

namespace {

void read_order(const char* name, Order& order, std::uint64_t& seed) {
  const char* value = std::getenv(name);
  if (value == nullptr) return;
  const std::string text = value;
  if (text == "reverse") order = Order::kReverse;
  if (text.rfind("shuffle", 0) == 0) {
    order = Order::kShuffle;
    if (text.size() > 8) seed = std::strtoull(value + 8, nullptr, 10);
  }
}

Options read_environment() {
  Options read;
  read_order("EMULATOR_ORDER", read.order, read.seed);
  read_order("EMULATOR_BLOCK_ORDER", read.block_order, read.seed);
  if (const char* value = std::getenv("EMULATOR_WORKERS")) read.workers = std::atoi(value);
  if (const char* value = std::getenv("EMULATOR_STACK")) {
    read.stack_bytes = std::strtoull(value, nullptr, 10);
  }
  if (const char* value = std::getenv("EMULATOR_POISON")) read.poison = std::atoi(value) != 0;
  if (const char* value = std::getenv("EMULATOR_PROXY_FENCES")) {
    read.proxy_fences = std::atoi(value) != 0;
  }
  if (const char* value = std::getenv("EMULATOR_HANG")) read.hang_seconds = std::atof(value);
  if (const char* value = std::getenv("EMULATOR_CAPABILITY")) {  // "8.9"
    read.capability_major = std::atoi(value);
    const char* point = std::strchr(value, '.');
    read.capability_minor = point != nullptr ? std::atoi(point + 1) : 0;
  }
  return read;
}

// Leaked on purpose: OS threads may still ask while static objects are destroyed.
struct Records {
  std::mutex mutex;
  Fault fault;
  std::string refused_launch;
  std::string shown;  // what fault() last returned
  std::vector<std::string> todo;
};

Records& records() {
  static Records* instance = new Records;
  return *instance;
}

thread_local cudaError_t t_last_error = cudaSuccess;

}  // namespace

Options& options() {
  static Options instance = read_environment();
  return instance;
}

const char* fault() {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.shown = r.fault.error != cudaSuccess ? r.fault.text : r.refused_launch;
  return r.shown.c_str();
}

void clear_fault() {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.fault = {};
  r.refused_launch.clear();
  t_last_error = cudaSuccess;
}

int todo_count() {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  return static_cast<int>(r.todo.size());
}

const char* todo(int index) {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  return r.todo.at(static_cast<std::size_t>(index)).c_str();
}

void clear_todo() {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.todo.clear();
}

void note_todo(const char* region) {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  for (const std::string& known : r.todo) {
    if (known == region) return;
  }
  r.todo.emplace_back(region);
}

const char* short_path(const char* file) {
#ifdef DRILL_ROOT
  constexpr std::size_t kLength = sizeof DRILL_ROOT - 1;
  if (std::strncmp(file, DRILL_ROOT, kLength) == 0) return file + kLength;
#endif
  return file;
}

std::string describe(Place place) {
  return std::string(short_path(place.file)) + ":" + std::to_string(place.line);
}

namespace {

std::string describe(uint3 index) {
  return "(" + std::to_string(index.x) + "," + std::to_string(index.y) + "," +
         std::to_string(index.z) + ")";
}

}  // namespace

std::string describe_block(uint3 block) {
  return "block " + describe(block);
}

std::string describe_thread(uint3 block, uint3 thread) {
  return describe_block(block) + " thread " + describe(thread);
}

void record_fault(const Fault& fault) {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  if (r.fault.error == cudaSuccess) r.fault = fault;
}

void record_refused_launch(const std::string& text) {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.refused_launch = text;
}

void forget_refused_launch() {
  record_refused_launch("");
}

cudaError_t sticky_error() {
  Records& r = records();
  const std::lock_guard<std::mutex> lock(r.mutex);
  return r.fault.error;
}

cudaError_t report_error(cudaError_t error) {
  const cudaError_t sticky = sticky_error();
  if (sticky != cudaSuccess) return sticky;
  if (error != cudaSuccess) t_last_error = error;
  return error;
}

cudaError_t last_error(bool clear) {
  const cudaError_t sticky = sticky_error();
  if (sticky != cudaSuccess) return sticky;
  const cudaError_t error = t_last_error;
  if (clear) t_last_error = cudaSuccess;
  return error;
}

}  // namespace emulator

cudaError_t cudaGetLastError() {
  return emulator::last_error(true);
}

cudaError_t cudaPeekAtLastError() {
  return emulator::last_error(false);
}
