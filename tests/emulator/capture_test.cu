// Stream capture: what is recorded, what breaks it, and with which errors.
#include "emulator_test.h"

#include <functional>
#include <thread>

namespace {

class CaptureTest : public EmulatorTest {
 protected:
  CaptureTest() { EXPECT_EQ(cudaStreamCreate(&stream_), cudaSuccess); }
  ~CaptureTest() override { EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess); }

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }
  cudaStreamCaptureStatus status() const {
    cudaStreamCaptureStatus value = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &value), cudaSuccess);
    return value;
  }

  cudaStream_t stream_ = nullptr;
};

__global__ void add(int* values, int amount) {
  values[threadIdx.x] += amount;
}

TEST_F(CaptureTest, RecordsWithCopiesOfTheArguments) {
  DeviceArray<int> values(std::vector<int>{1, 2, 3, 4});
  DeviceArray<int> copy(4);
  int amount = 10;
  begin();
  EXPECT_EQ(moe::launch(add, 1, 4, 0, stream_, values.get(), amount), cudaSuccess);
  amount = 1000;
  EXPECT_EQ(cudaMemcpyAsync(copy.get(), values.get(), 16, cudaMemcpyDeviceToDevice, stream_),
            cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(values.get(), 0, 4, stream_), cudaSuccess);
  EXPECT_EQ(status(), cudaStreamCaptureStatusActive);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(values.host(), (std::vector<int>{1, 2, 3, 4})) << "nothing runs during a capture";

  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(values.host(), (std::vector<int>{0, 22, 23, 24}));
  EXPECT_EQ(copy.host(), (std::vector<int>{10, 22, 23, 24}));
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(CaptureTest, ForbiddenCallsInvalidate) {
  DeviceArray<int> values(4);
  int host[4] = {};
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreate(&event), cudaSuccess);
  void* memory = nullptr;
  struct Case {
    const char* name;
    std::function<cudaError_t()> call;
    cudaError_t error;
  };
  const cudaError_t unsupported = cudaErrorStreamCaptureUnsupported;
  const Case cases[] = {
      {"cudaMalloc", [&] { return cudaMalloc(&memory, 4); }, unsupported},
      {"cudaFree", [&] { return cudaFree(values.get()); }, unsupported},
      {"cudaMallocAsync", [&] { return cudaMallocAsync(&memory, 4, stream_); }, unsupported},
      {"cudaMemcpy", [&] { return cudaMemcpy(host, values.get(), 4, cudaMemcpyDeviceToHost); },
       cudaErrorStreamCaptureImplicit},
      {"cudaMemcpyAsync to the host",
       [&] { return cudaMemcpyAsync(host, values.get(), 4, cudaMemcpyDeviceToHost, stream_); },
       unsupported},
      {"cudaMemcpyAsync from the host, kind left open",
       [&] { return cudaMemcpyAsync(values.get(), host, 4, cudaMemcpyDefault, stream_); },
       unsupported},
      {"cudaStreamSynchronize", [&] { return cudaStreamSynchronize(stream_); }, unsupported},
      {"cudaStreamQuery", [&] { return cudaStreamQuery(stream_); }, unsupported},
      {"cudaDeviceSynchronize", [&] { return cudaDeviceSynchronize(); }, unsupported},
      {"cudaEventQuery", [&] { return cudaEventQuery(event); }, unsupported},
      {"launch on stream 0", [&] { return moe::launch(add, 1, 1, 0, nullptr, values.get(), 1); },
       cudaErrorStreamCaptureImplicit},
      {"cudaMemsetAsync on stream 0", [&] { return cudaMemsetAsync(values.get(), 0, 4, nullptr); },
       cudaErrorStreamCaptureImplicit},
      {"cudaEventRecord on stream 0", [&] { return cudaEventRecord(event, nullptr); },
       cudaErrorStreamCaptureImplicit},
  };
  for (const Case& c : cases) {
    begin();
    EXPECT_EQ(c.call(), c.error) << c.name;
    EXPECT_EQ(status(), cudaStreamCaptureStatusInvalidated) << c.name;
    EXPECT_EQ(moe::launch(add, 1, 1, 0, stream_, values.get(), 1),
              cudaErrorStreamCaptureInvalidated);
    auto graph = reinterpret_cast<cudaGraph_t>(&host);
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureInvalidated) << c.name;
    EXPECT_EQ(graph, nullptr) << c.name;
    EXPECT_EQ(status(), cudaStreamCaptureStatusNone) << c.name;
  }
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
  (void)cudaGetLastError();
}

TEST_F(CaptureTest, RelaxedModeAllowsAllocation) {
  begin(cudaStreamCaptureModeRelaxed);
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(CaptureTest, ThreadLocalModeBindsOneThread) {
  begin(cudaStreamCaptureModeThreadLocal);
  std::thread([] {
    void* memory = nullptr;
    EXPECT_EQ(cudaMalloc(&memory, 4), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
  }).join();
  cudaGraph_t graph = nullptr;
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  EXPECT_EQ(status(), cudaStreamCaptureStatusActive);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

TEST_F(CaptureTest, BeginAndEndComeInPairs) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  (void)cudaGetLastError();
}

__global__ void always_traps() {
  __trap();
}

TEST_F(CaptureTest, FaultsShowAtTheReplay) {
  begin();
  EXPECT_EQ(moe::launch(always_traps, 1, 1, 0, stream_), cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, stream_), cudaErrorLaunchFailure);
  emulator::clear_fault();
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
}

}  // namespace
