// Device memory: host memory with a register of what was allocated.
#include <emulator/control.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "context.h"
#include "fault.h"
#include "named_arrays.h"
#include "observer.h"
#include "stream.h"

namespace emulator {

namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kTotalBytes = std::size_t{64} << 30;  // what the device claims to have
// Larger ones are mapped and stay unfilled: what is never touched costs nothing.
constexpr std::size_t kMappedFrom = (std::size_t{1} << 30) + 1;

struct Allocation {
  std::size_t bytes = 0;
  bool mapped = false;
};

// Leaked on purpose, as in control.cpp.
struct Heap {
  std::mutex mutex;
  std::map<std::uintptr_t, Allocation> allocations;
  std::size_t used = 0;
  Allocations asked;
};

Heap& heap() {
  static Heap* instance = new Heap;
  return *instance;
}

void note_request(std::size_t bytes) {
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  ++h.asked.calls;
  h.asked.bytes += bytes;
}

void* obtain(std::size_t bytes, bool mapped) {
  if (mapped) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  // AddressSanitizer is told the exact end.
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, kAsan ? bytes : rounded) != 0) return nullptr;
  std::memset(memory, 0xff, bytes);
  return memory;
}

// The allocation that the address lies in, and how many of its bytes are left from there.
bool find(const void* address, std::size_t* bytes_left) {
  AllocationRange range;
  if (!find_allocation(address, &range)) return false;
  *bytes_left = range.bytes - (reinterpret_cast<std::uintptr_t>(address) - range.low);
  return true;
}

// Host memory is not known; device memory must hold all of the bytes.
bool fits(const void* address, std::size_t bytes) {
  std::size_t left = 0;
  return address != nullptr && (!find(address, &left) || bytes <= left);
}

bool on_device(const void* address) {
  std::size_t left = 0;
  return find(address, &left);
}

bool is_device_copy(const void* to, const void* from, cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToDevice ||
         (kind == cudaMemcpyDefault && on_device(to) && on_device(from));
}

cudaError_t allocate(void** pointer, std::size_t bytes) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  if (bytes > kTotalBytes - h.used) return cudaErrorMemoryAllocation;
  const bool mapped = bytes >= kMappedFrom;
  void* memory = obtain(bytes, mapped);
  if (memory == nullptr) return cudaErrorMemoryAllocation;
  h.allocations[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, mapped};
  h.used += bytes;
  *pointer = memory;
  return cudaSuccess;
}

cudaError_t release(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  const auto found = h.allocations.find(reinterpret_cast<std::uintptr_t>(pointer));
  if (found == h.allocations.end()) return cudaErrorInvalidValue;
  const Allocation allocation = found->second;
  h.allocations.erase(found);
  h.used -= allocation.bytes;
  if (allocation.mapped) {
    munmap(pointer, allocation.bytes);
  } else {
    std::free(pointer);
  }
  return cudaSuccess;
}

// A copy or fill on a stream: recorded if that captures, else done now.
cudaError_t submit(GraphNode&& node, CallKind kind, cudaStream_t stream) {
  GraphNodes* nodes = nullptr;
  const cudaError_t error = enter_stream(stream, kind, &nodes);
  if (error != cudaSuccess) return error;
  const bool copy = node.kind == GraphNode::Kind::kCopy;
  if (node.bytes == 0) return cudaSuccess;
  if (!fits(node.to, node.bytes) || (copy && !fits(node.from, node.bytes))) {
    return cudaErrorInvalidValue;
  }
  if (nodes == nullptr) return run_node(node);
  nodes->push_back(std::make_shared<GraphNode>(std::move(node)));
  return cudaSuccess;
}

// A copy that names no stream: it goes through stream 0, whose error comes first, and waits.
cudaError_t enter_waiting_copy() {
  GraphNodes* nodes = nullptr;
  const cudaError_t error = enter_stream(nullptr, CallKind::kUncapturable, &nodes);
  return error != cudaSuccess ? error : enter_device();
}

GraphNode make_copy(void* to, const void* from, std::size_t bytes) {
  GraphNode node;
  node.kind = GraphNode::Kind::kCopy;
  node.to = to;
  node.from = from;
  node.bytes = bytes;
  return node;
}

GraphNode make_fill(void* to, int value, std::size_t bytes) {
  GraphNode node;
  node.kind = GraphNode::Kind::kFill;
  node.to = to;
  node.value = value;
  node.bytes = bytes;
  return node;
}

}  // namespace

Allocations allocations() {
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  return h.asked;
}

void forget_allocations() {
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  h.asked = {};
}

bool find_allocation(const void* address, AllocationRange* range) {
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  const auto start = reinterpret_cast<std::uintptr_t>(address);
  const auto after = h.allocations.upper_bound(start);
  if (after == h.allocations.begin()) return false;
  const auto& [low, allocation] = *std::prev(after);
  if (start - low >= allocation.bytes) return false;
  *range = {low, allocation.bytes};
  return true;
}

std::vector<DeviceRange> device_allocations() {
  Heap& h = heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  std::vector<DeviceRange> all;
  for (const auto& [low, allocation] : h.allocations) all.push_back({low, allocation.bytes});
  return all;
}

cudaError_t copy_to_symbol(
    void* symbol, size_t size, const void* from, size_t bytes, size_t offset) {
  if (const cudaError_t error = enter_waiting_copy()) return report_error(error);
  if (offset > size || bytes > size - offset) return report_error(cudaErrorInvalidValue);
  std::memcpy(static_cast<char*>(symbol) + offset, from, bytes);
  return cudaSuccess;
}

cudaError_t copy_from_symbol(
    void* to, const void* symbol, size_t size, size_t bytes, size_t offset) {
  if (const cudaError_t error = enter_waiting_copy()) return report_error(error);
  if (offset > size || bytes > size - offset) return report_error(cudaErrorInvalidValue);
  std::memcpy(to, static_cast<const char*>(symbol) + offset, bytes);
  return cudaSuccess;
}

}  // namespace emulator

using emulator::CallKind;
using emulator::report_error;

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  emulator::note_request(bytes);
  if (const cudaError_t error = emulator::enter_device()) return report_error(error);
  return report_error(emulator::allocate(pointer, bytes));
}

cudaError_t cudaFree(void* pointer) {
  if (const cudaError_t error = emulator::enter_device()) return report_error(error);
  return report_error(emulator::release(pointer));
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  emulator::note_request(bytes);
  emulator::GraphNodes* nodes = nullptr;
  const cudaError_t error = emulator::enter_stream(stream, CallKind::kUncapturable, &nodes);
  return report_error(error != cudaSuccess ? error : emulator::allocate(pointer, bytes));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  emulator::GraphNodes* nodes = nullptr;
  const cudaError_t error = emulator::enter_stream(stream, CallKind::kUncapturable, &nodes);
  return report_error(error != cudaSuccess ? error : emulator::release(pointer));
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  emulator::note_request(bytes);
  if (const cudaError_t error = emulator::enter_device()) return report_error(error);
  *pointer = std::malloc(bytes);
  return report_error(*pointer == nullptr ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (const cudaError_t error = emulator::enter_device()) return report_error(error);
  std::free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  const bool device_copy = emulator::is_device_copy(to, from, kind);
  return report_error(emulator::submit(emulator::make_copy(to, from, bytes),
                                       device_copy ? CallKind::kWork : CallKind::kUncapturable,
                                       stream));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = emulator::enter_waiting_copy()) return report_error(error);
  return cudaMemcpyAsync(to, from, bytes, kind, nullptr);
}

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return report_error(
      emulator::submit(emulator::make_fill(pointer, value, bytes), CallKind::kWork, stream));
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return cudaMemsetAsync(pointer, value, bytes, nullptr);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  emulator::Heap& h = emulator::heap();
  const std::lock_guard<std::mutex> lock(h.mutex);
  if (free_bytes != nullptr) *free_bytes = emulator::kTotalBytes - h.used;
  if (total_bytes != nullptr) *total_bytes = emulator::kTotalBytes;
  return emulator::sticky_error();
}
