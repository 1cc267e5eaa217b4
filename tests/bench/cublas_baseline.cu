// What cuBLAS needs for the same FLOPs as one dense GEMM each: the roof that a grouped GEMM is
// compared with. Same clock as the stages: graph replay between events, L2 flushed, random data,
// median.
//   cublas_baseline T K H I
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "../runner/generated.h"

namespace {

constexpr int kReplays = 40;
constexpr size_t kFlushBytes = size_t{256} << 20;

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "cublas_baseline: %s failed (%d)\n", what, status);
  std::exit(70);
}

__nv_bfloat16* random_matrix(uint64_t elements, uint64_t seed) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, 2 * elements), "cudaMalloc");
  moe::protocol::Buffer buffer = {};
  buffer.allocation_bytes = 2 * elements;
  buffer.fill = moe::protocol::Fill::kGeneratedBf16;
  buffer.scale = 1.0f;
  buffer.seed = seed;
  check(moe::runner::generate(memory, buffer), "generate");
  return static_cast<__nv_bfloat16*>(memory);
}

// out [rows, n] = a [rows, depth] * w [n, depth]^T, row-major; cuBLAS counts in columns.
double time_gemm(cublasHandle_t handle, cudaStream_t stream, int rows, int n, int depth) {
  __nv_bfloat16* a = random_matrix(static_cast<uint64_t>(rows) * depth, 1);
  __nv_bfloat16* w = random_matrix(static_cast<uint64_t>(n) * depth, 2);
  __nv_bfloat16* out = random_matrix(static_cast<uint64_t>(rows) * n, 3);
  void* flush = nullptr;
  check(cudaMalloc(&flush, kFlushBytes), "cudaMalloc");
  const float one = 1.0f;
  const float zero = 0.0f;
  const auto multiply = [&] {
    check(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, rows, depth, &one, w, CUDA_R_16BF,
                       depth, a, CUDA_R_16BF, depth, &zero, out, CUDA_R_16BF, n, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  };
  multiply();
  check(cudaStreamSynchronize(stream), "first call");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin capture");
  multiply();
  check(cudaStreamEndCapture(stream, &graph), "end capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
  std::vector<float> times;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  for (int i = 0; i < kReplays + 3; ++i) {
    check(cudaMemsetAsync(flush, i, kFlushBytes, stream), "flush");
    check(cudaEventRecord(begin, stream), "record");
    check(cudaGraphLaunch(executable, stream), "replay");
    check(cudaEventRecord(end, stream), "record");
    check(cudaStreamSynchronize(stream), "replay");
    float milliseconds = 0.0f;
    check(cudaEventElapsedTime(&milliseconds, begin, end), "elapsed");
    if (i >= 3) times.push_back(1000.0f * milliseconds);
  }
  std::nth_element(times.begin(), times.begin() + kReplays / 2, times.end());
  for (void* memory :
       {static_cast<void*>(a), static_cast<void*>(w), static_cast<void*>(out), flush}) {
    check(cudaFree(memory), "cudaFree");
  }
  return static_cast<double>(times[kReplays / 2]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: %s T K H I\n", argv[0]);
    return 2;
  }
  const int rows = std::atoi(argv[1]) * std::atoi(argv[2]);
  const int hidden = std::atoi(argv[3]);
  const int intermediate = std::atoi(argv[4]);
  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  check(cudaStreamCreate(&stream), "stream");
  check(cublasSetStream(handle, stream), "cublasSetStream");
  const double first = time_gemm(handle, stream, rows, 2 * intermediate, hidden);
  const double second = time_gemm(handle, stream, rows, hidden, intermediate);
  const double flops = 2.0 * rows * hidden * intermediate;
  std::printf(
      "  cuBLAS   GEMM1 %9.1f us  %6.1f TFLOPS   GEMM2 %9.1f us  %6.1f TFLOPS   both %.1f us\n",
      first, 2.0 * flops / first * 1e-6, second, flops / second * 1e-6, first + second);
  return 0;
}
