// backend.h: the few things that the runner does differently on the emulator and on a GPU.
#pragma once

#include <cuda_runtime.h>

#include "protocol.h"

namespace moe::runner {

// Before the first call: where the emulator writes a last report.
void start_backend(int report_fd);
void set_thread_order(protocol::ThreadOrder order);
// Forget the blanks that were reached; after a call, note them in the reply.
void clear_todos();
void note_todos(protocol::Reply& reply);
// Forget what was allocated; after a call, note in the reply what it asked for, granted or not.
void forget_allocations();
void note_allocations(protocol::Reply& reply);
// Around the call under test: a traced build of the emulator watches it where it was told to.
void begin_watch();
void end_watch();
// What the kernels of a captured call use; nothing on the emulator.
void note_kernels(cudaGraph_t graph, protocol::Reply& reply);
// Tells the emulator the names and shapes of the buffers, whose payloads lie at `pointers`; what is
// around them is out of bounds until they are released, which must come before a copy of it.
void guard_buffers(const protocol::Request& request, void* const* pointers);
void release_buffers();
// The emulator's report of a device fault; empty on a GPU.
void note_fault(protocol::Reply& reply);

}  // namespace moe::runner
