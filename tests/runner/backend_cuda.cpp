#include <drills/todo.h>

#include <algorithm>
#include <iterator>

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

void note_fault(protocol::Reply& /*reply*/) {}

}  // namespace moe::runner
