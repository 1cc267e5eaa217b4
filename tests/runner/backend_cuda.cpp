#include <cxxabi.h>
#include <drills/todo.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "backend.h"

namespace moe::runner {

void start_backend(int /*report_fd*/) {}

void set_thread_order(protocol::ThreadOrder /*order*/) {}  // the hardware decides

void clear_todos() {
  std::fill(std::begin(host_todo_slots), std::end(host_todo_slots), 0u);
  uint32_t unused[kTodoSlots] = {};
  for (TodoSlots* slots = TodoSlots::first; slots != nullptr; slots = slots->next) {
    (void)slots->access(unused, true);
  }
}

void begin_watch() {}

void end_watch() {}

void note_todos(protocol::Reply& reply) {
  const auto note = [&](const uint32_t(&hashes)[kTodoSlots]) {
    for (const uint32_t hash : hashes) {
      uint32_t* end = reply.todo_hashes + reply.num_todos;
      if (hash == 0 || reply.num_todos == protocol::kMaxTodos) continue;
      if (std::find(reply.todo_hashes, end, hash) == end)
        reply.todo_hashes[reply.num_todos++] = hash;
    }
  };
  note(host_todo_slots);
  for (TodoSlots* slots = TodoSlots::first; slots != nullptr; slots = slots->next) {
    uint32_t hashes[kTodoSlots] = {};
    if (slots->access(hashes, false) == cudaSuccess) note(hashes);
  }
}

void guard_buffers(const protocol::Request& /*request*/, void* const* /*pointers*/) {}

void release_buffers() {}

void note_fault(protocol::Reply& /*reply*/) {}

namespace {

// "void moe::mine::kernel<64>(Params)" -> "kernel<64>".
std::string kernel_name(const void* function) {
#if CUDART_VERSION >= 12030
  const char* mangled = nullptr;
  if (cudaFuncGetName(&mangled, function) != cudaSuccess || mangled == nullptr) return "kernel";
  int status = 0;
  char* plain = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  std::string name = plain != nullptr ? plain : mangled;
  std::free(plain);
  for (const char* prefix :
       {"void ", "moe::mine::", "moe::solution::", "(anonymous namespace)::"}) {
    for (size_t at; (at = name.find(prefix)) != std::string::npos;) {
      name.erase(at, std::string(prefix).size());
    }
  }
  const size_t arguments = name.rfind('(');  // template arguments may hold casts: "(int)64"
  return name.substr(0, name.find(">(") != std::string::npos ? name.find(">(") + 1 : arguments);
#else
  (void)function;
  return "kernel";
#endif
}

bool describe(cudaGraphNode_t node, protocol::KernelUse& use) {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  cudaKernelNodeParams launch = {};
  cudaFuncAttributes attributes = {};
  if (cudaGraphNodeGetType(node, &type) != cudaSuccess || type != cudaGraphNodeTypeKernel) {
    return false;
  }
  if (cudaGraphKernelNodeGetParams(node, &launch) != cudaSuccess ||
      cudaFuncGetAttributes(&attributes, launch.func) != cudaSuccess) {
    return false;
  }
  const std::string name = kernel_name(launch.func);
  name.copy(use.name, sizeof use.name - 1);
  use.registers = attributes.numRegs;
  use.local_bytes = static_cast<int32_t>(attributes.localSizeBytes);
  use.static_bytes = static_cast<int32_t>(attributes.sharedSizeBytes);
  use.dynamic_bytes = static_cast<int32_t>(launch.sharedMemBytes);
  use.threads = static_cast<int32_t>(launch.blockDim.x * launch.blockDim.y * launch.blockDim.z);
  use.blocks = int64_t{launch.gridDim.x} * launch.gridDim.y * launch.gridDim.z;
  (void)cudaOccupancyMaxActiveBlocksPerMultiprocessor(&use.blocks_per_multiprocessor, launch.func,
                                                      use.threads, launch.sharedMemBytes);
  return true;
}

}  // namespace

void note_kernels(cudaGraph_t graph, protocol::Reply& reply) {
  size_t count = 0;
  if (cudaGraphGetNodes(graph, nullptr, &count) != cudaSuccess || count == 0) return;
  std::vector<cudaGraphNode_t> nodes(count);
  if (cudaGraphGetNodes(graph, nodes.data(), &count) != cudaSuccess) return;
  for (const cudaGraphNode_t node : nodes) {
    if (reply.num_kernels == protocol::kMaxKernels) return;
    if (describe(node, reply.kernels[reply.num_kernels])) ++reply.num_kernels;
  }
  (void)cudaGetLastError();  // what could not be described is no error of the call
}

}  // namespace moe::runner
