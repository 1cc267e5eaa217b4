#include <emulator/control.h>
#include <emulator/named_arrays.h>

#include <cstdio>
#include <cstring>

#include "backend.h"

namespace moe::runner {

void start_backend(int report_fd) {
  emulator::options().report_fd = report_fd;
}

void set_thread_order(protocol::ThreadOrder order) {
  emulator::options().order = order == protocol::ThreadOrder::kForward ? emulator::Order::kForward
                                                                       : emulator::Order::kReverse;
}

void clear_todos() {
  emulator::clear_todo();
}

void forget_allocations() {
  emulator::forget_allocations();
}

void note_allocations(protocol::Reply& reply) {
  const emulator::Allocations made = emulator::allocations();
  reply.num_allocations = made.calls;
  reply.allocated_bytes = static_cast<int64_t>(made.bytes);
}

void begin_watch() {
  emulator::begin_watch();
}

void end_watch() {
  emulator::end_watch();
}

void note_todos(protocol::Reply& reply) {
  for (int i = 0; i < emulator::todo_count() && i < protocol::kMaxTodos; ++i) {
    std::snprintf(reply.todo_names[i], sizeof reply.todo_names[i], "%s", emulator::todo(i));
    reply.num_todos = static_cast<uint32_t>(i + 1);
  }
}

void note_kernels(cudaGraph_t /*graph*/, protocol::Reply& /*reply*/) {}

void guard_buffers(const protocol::Request& request, void* const* pointers) {
  for (uint32_t i = 0; i < request.num_buffers; ++i) {
    const protocol::Buffer& b = request.buffers[i];
    if (b.name[0] == '\0' || pointers[i] == nullptr) continue;
    emulator::name_array({pointers[i], b.payload_bytes, b.name, b.element_bytes, b.columns, b.rows,
                          b.unwritten == 0});
  }
}

void release_buffers() {
  emulator::forget_arrays();
}

void note_fault(protocol::Reply& reply) {
  std::snprintf(reply.fault, sizeof reply.fault, "%s", emulator::fault());
}

}  // namespace moe::runner
