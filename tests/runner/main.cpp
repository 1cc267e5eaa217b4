// The runner: the child process in which the code under test lives. It makes device buffers from
// the images that the parent sends, calls one function, and sends the buffers back. It decides
// nothing: no expected value, poison pattern or verdict is known here. Design: reference in
// content/testing.md.
#include <cuda_runtime.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "backend.h"
#include "device_buffers.h"
#include "protocol.h"
#include "stage_calls.h"
#include "timing.h"

namespace moe::runner {
namespace {

using protocol::Kind;
using protocol::Reply;
using protocol::Request;

// A memory file of the parent, mapped for as long as the object lives.
class Mapping {
 public:
  Mapping(int fd, size_t bytes, bool writable) : fd_(fd), bytes_(bytes) {
    if (fd < 0 || bytes == 0) return;
    void* address = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                         writable ? MAP_SHARED : MAP_PRIVATE, fd, 0);
    if (address != MAP_FAILED) data_ = static_cast<unsigned char*>(address);
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
    if (fd_ >= 0) close(fd_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  unsigned char* data() const { return data_; }

 private:
  int fd_;
  size_t bytes_;
  unsigned char* data_ = nullptr;
};

void name_statuses(Reply& reply) {
  const int32_t statuses[3] = {reply.call_status, reply.device_status, reply.capture_status};
  for (int i = 0; i < 3; ++i) {
    std::snprintf(reply.status_names[i], sizeof reply.status_names[i], "%s",
                  cudaGetErrorName(static_cast<cudaError_t>(statuses[i])));
  }
}

// Captures one call, then replays the graph on other data: host work and values read on the host
// would be missing from the replay, waiting or allocating breaks the capture.
void capture_and_replay(const StageCall& call,
                        DeviceBuffers& buffers,
                        const unsigned char* replay_images,
                        Reply& reply) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(call.stream, cudaStreamCaptureModeGlobal), "begin capture");
  reply.call_status = call_stage(call);
  cudaError_t status = cudaStreamEndCapture(call.stream, &graph);
  if (status == cudaSuccess) status = cudaGraphInstantiate(&executable, graph, 0);
  reply.capture_status = status;
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    return;
  }
  buffers.upload(replay_images);
  reply.capture_status = cudaGraphLaunch(executable, call.stream);
  reply.device_status = cudaStreamSynchronize(call.stream);
  (void)cudaGraphExecDestroy(executable);
  (void)cudaGraphDestroy(graph);
}

void run_call(
    const Request& request, int image_fd, int result_fd, cudaStream_t stream, Reply& reply) {
  const bool replay = request.kind == Kind::kReplay;
  const size_t bytes = request.image_file_bytes;
  const Mapping images(image_fd, replay ? 2 * bytes : bytes, false);
  const Mapping results(result_fd, bytes, true);
  DeviceBuffers buffers(request);
  const StageCall call = {request.operation, request.integers, buffers.pointers(), stream};
  if (const char* refusal = refusal_of_stage(call)) {
    std::snprintf(reply.refusal, sizeof reply.refusal, "%s", refusal);
  }
  clear_todos();
  buffers.upload(images.data());
  forget_allocations();
  if (replay) {
    capture_and_replay(call, buffers, images.data() + bytes, reply);
  } else {
    begin_watch();
    reply.call_status = call_stage(call);
    reply.device_status = cudaStreamSynchronize(stream);
    end_watch();
  }
  // Work that was put on another stream is awaited too; the parent sees what it left behind.
  const cudaError_t device = cudaDeviceSynchronize();
  if (reply.device_status == cudaSuccess) reply.device_status = device;
  note_allocations(reply);
  if (reply.device_status == cudaSuccess && !buffers.download(results.data())) {
    reply.device_status = cudaErrorUnknown;
  }
  (void)cudaGetLastError();
  note_todos(reply);
}

// One request with its two descriptors; false when the parent is gone.
bool receive(Request& request, int (&fds)[2]) {
  iovec part = {&request, sizeof request};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fds)];
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(protocol::kSocketFd, &message, MSG_CMSG_CLOEXEC);
  fds[0] = fds[1] = -1;
  const cmsghdr* header = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof fds)) {
    std::memcpy(fds, CMSG_DATA(header), sizeof fds);
  }
  return got == static_cast<ssize_t>(sizeof request) && request.magic == protocol::kMagic;
}

int serve() {
  start_backend(protocol::kReportFd);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "cudaStreamCreate");  // a blocking one
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");

  Request request = {};
  int fds[2] = {-1, -1};
  while (receive(request, fds)) {
    Reply reply = {};
    reply.magic = protocol::kMagic;
    reply.sequence = request.sequence;
    reply.multiprocessors = static_cast<uint32_t>(properties.multiProcessorCount);
    reply.capability_major = static_cast<uint32_t>(properties.major);
    reply.capability_minor = static_cast<uint32_t>(properties.minor);
    std::snprintf(reply.device, sizeof reply.device, "%.95s", properties.name);
    set_thread_order(request.order);
    if (request.kind == Kind::kValue) {
      const StageCall call = {request.operation, request.integers, nullptr, nullptr};
      clear_todos();
      reply.value = value_of_stage(call);
      note_todos(reply);
    } else if (request.kind == Kind::kTime) {
      const Mapping images(fds[0], request.image_file_bytes, false);
      const Mapping results(fds[1], request.result_file_bytes, true);
      time_call(request, images.data(), results.data(), stream, reply);
    } else if (request.kind != Kind::kHello) {
      run_call(request, fds[0], fds[1], stream, reply);
    }
    note_fault(reply);
    name_statuses(reply);
    std::fflush(nullptr);
    if (send(protocol::kSocketFd, &reply, sizeof reply, MSG_NOSIGNAL) != sizeof reply) return 70;
  }
  return 0;
}

}  // namespace
}  // namespace moe::runner

int main() {
  return moe::runner::serve();
}
