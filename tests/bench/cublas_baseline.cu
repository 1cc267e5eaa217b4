// What cuBLAS needs for the same work, on the same clock as the stages: graph replay between
// events, L2 flushed, random data, median. One line a measurement: "KIND GEMM us".
//   dense      one GEMM over all T*K rows: the roof that a grouped GEMM is compared with
//   grouped    cublasGemmGroupedBatchedEx, one group an expert (no graph: it copies its arrays)
//   capacity   a strided batch with room for 1.25 times the average expert; what is above is
//   dropped cublas_baseline ROWS H I [COUNT OF EXPERT 0, 1, ...] [--brief]
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "../runner/generated.h"

namespace {

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr int kWarmUps = 3;

int replays = 40;

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

// Operands of one of the two GEMMs: a [rows, depth], w [experts, n, depth], out [rows, n].
struct Operands {
  int rows, n, depth, experts;
  __nv_bfloat16 *a, *w, *out;

  Operands(int num_rows, int columns, int terms, int num_experts)
      : rows(num_rows), n(columns), depth(terms), experts(num_experts) {
    const auto elements = [](int x, int y) { return static_cast<uint64_t>(x) * y; };
    a = random_matrix(elements(rows, depth), 1);
    w = random_matrix(elements(n, depth) * experts, 2);
    out = random_matrix(elements(rows, n), 3);
  }
  ~Operands() {
    for (void* memory : {a, w, out}) check(cudaFree(memory), "cudaFree");
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;
};

class Clock {
 public:
  explicit Clock(cudaStream_t stream) : stream_(stream) {
    check(cudaMalloc(&flush_, kFlushBytes), "cudaMalloc");
    check(cudaEventCreate(&begin_), "event");
    check(cudaEventCreate(&end_), "event");
  }
  ~Clock() { (void)cudaFree(flush_); }
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // The median of what `run` takes, in us.
  double median_us(const std::function<void()>& run) {
    std::vector<float> times;
    for (int i = 0; i < replays + kWarmUps; ++i) {
      check(cudaMemsetAsync(flush_, i, kFlushBytes, stream_), "flush");
      check(cudaEventRecord(begin_, stream_), "record");
      run();
      check(cudaEventRecord(end_, stream_), "record");
      check(cudaStreamSynchronize(stream_), "replay");
      float milliseconds = 0.0f;
      check(cudaEventElapsedTime(&milliseconds, begin_, end_), "elapsed");
      if (i >= kWarmUps) times.push_back(1000.0f * milliseconds);
    }
    std::nth_element(times.begin(), times.begin() + replays / 2, times.end());
    return static_cast<double>(times[static_cast<size_t>(replays / 2)]);
  }

  double median_us_of_graph(const std::function<void()>& run) {
    run();
    check(cudaStreamSynchronize(stream_), "first call");
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "begin capture");
    run();
    check(cudaStreamEndCapture(stream_, &graph), "end capture");
    check(cudaGraphInstantiate(&executable, graph, 0), "instantiate");
    const double us = median_us([&] { check(cudaGraphLaunch(executable, stream_), "replay"); });
    check(cudaGraphExecDestroy(executable), "destroy");
    check(cudaGraphDestroy(graph), "destroy");
    return us;
  }

 private:
  cudaStream_t stream_;
  void* flush_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

constexpr float kOne = 1.0f;
constexpr float kZero = 0.0f;

// out [rows, n] = a [rows, depth] * w [n, depth]^T, row-major; cuBLAS counts in columns.
double time_dense(cublasHandle_t handle, Clock& clock, const Operands& o) {
  return clock.median_us_of_graph([&] {
    check(cublasGemmEx(handle, CUBLAS_OP_T, CUBLAS_OP_N, o.n, o.rows, o.depth, &kOne, o.w,
                       CUDA_R_16BF, o.depth, o.a, CUDA_R_16BF, o.depth, &kZero, o.out, CUDA_R_16BF,
                       o.n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  });
}

double time_capacity(cublasHandle_t handle, Clock& clock, int rows, int n, int depth, int experts) {
  const Operands o(rows * experts, n, depth, experts);
  const auto stride = [](int x, int y) { return static_cast<long long>(x) * y; };
  return clock.median_us_of_graph([&] {
    check(cublasGemmStridedBatchedEx(
              handle, CUBLAS_OP_T, CUBLAS_OP_N, n, rows, depth, &kOne, o.w, CUDA_R_16BF, depth,
              stride(n, depth), o.a, CUDA_R_16BF, depth, stride(rows, depth), &kZero, o.out,
              CUDA_R_16BF, n, stride(rows, n), experts, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
          "cublasGemmStridedBatchedEx");
  });
}

#if CUBLAS_VERSION >= 120500
const void** on_device(const std::vector<const void*>& pointers) {
  void* memory = nullptr;
  const size_t bytes = pointers.size() * sizeof(void*);
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  check(cudaMemcpy(memory, pointers.data(), bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return static_cast<const void**>(memory);
}

// Rows of one expert lie side by side, as they do behind align; empty experts have no group.
double time_grouped(cublasHandle_t handle,
                    Clock& clock,
                    const Operands& o,
                    const std::vector<int>& counts) {
  std::vector<int> m, n, k, lda, ldb, ldc, sizes;
  std::vector<const void*> a, b, c;
  std::vector<cublasOperation_t> transposed, plain;
  int64_t row = 0;
  for (size_t e = 0; e < counts.size(); ++e) {
    if (counts[e] == 0) continue;
    m.push_back(o.n);
    n.push_back(counts[e]);
    k.push_back(o.depth);
    lda.push_back(o.depth);
    ldb.push_back(o.depth);
    ldc.push_back(o.n);
    sizes.push_back(1);
    transposed.push_back(CUBLAS_OP_T);
    plain.push_back(CUBLAS_OP_N);
    a.push_back(o.w + static_cast<int64_t>(e) * o.n * o.depth);
    b.push_back(o.a + row * o.depth);
    c.push_back(o.out + row * o.n);
    row += counts[e];
  }
  const std::vector<float> alpha(m.size(), kOne), beta(m.size(), kZero);
  const void** a_list = on_device(a);
  const void** b_list = on_device(b);
  const void** c_list = on_device(c);
  const double us = clock.median_us([&] {
    check(cublasGemmGroupedBatchedEx(handle, transposed.data(), plain.data(), m.data(), n.data(),
                                     k.data(), alpha.data(), a_list, CUDA_R_16BF, lda.data(),
                                     b_list, CUDA_R_16BF, ldb.data(), beta.data(),
                                     const_cast<void**>(c_list), CUDA_R_16BF, ldc.data(),
                                     static_cast<int>(m.size()), sizes.data(), CUBLAS_COMPUTE_32F),
          "cublasGemmGroupedBatchedEx");
  });
  for (const void** list : {a_list, b_list, c_list}) check(cudaFree(list), "cudaFree");
  return us;
}
#endif

void say(const char* kind, int gemm, double us) {
  std::printf("%s %d %.3f\n", kind, gemm, us);
  std::fflush(stdout);
}

// GEMM1 has N = 2I and D = H, GEMM2 the other way round.
void time_gemm(cublasHandle_t handle,
               Clock& clock,
               int gemm,
               int rows,
               int n,
               int depth,
               const std::vector<int>& counts,
               bool brief) {
  const int experts = std::max(1, static_cast<int>(counts.size()));
  {
    const Operands o(rows, n, depth, brief ? 1 : experts);
    say("dense", gemm, time_dense(handle, clock, o));
#if CUBLAS_VERSION >= 120500
    if (!brief && !counts.empty()) say("grouped", gemm, time_grouped(handle, clock, o, counts));
#endif
  }
  if (brief || counts.empty()) return;
  const int capacity = static_cast<int>((5LL * rows + 4LL * experts - 1) / (4LL * experts));
  say("capacity", gemm, time_capacity(handle, clock, capacity, n, depth, experts));
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> numbers;
  bool brief = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--brief") == 0) {
      brief = true;
    } else {
      numbers.push_back(std::atoi(argv[i]));
    }
  }
  if (numbers.size() < 3 ||
      std::any_of(numbers.begin(), numbers.begin() + 3, [](int number) { return number <= 0; })) {
    std::fprintf(stderr, "usage: %s ROWS H I [COUNTS...] [--brief]\n", argv[0]);
    return 2;
  }
  if (brief) replays = 15;
  const std::vector<int> counts(numbers.begin() + 3, numbers.end());
  cublasHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  check(cublasCreate(&handle), "cublasCreate");
  check(cudaStreamCreate(&stream), "stream");
  check(cublasSetStream(handle, stream), "cublasSetStream");
  Clock clock(stream);
  time_gemm(handle, clock, 1, numbers[0], 2 * numbers[2], numbers[1], counts, brief);
  time_gemm(handle, clock, 2, numbers[0], numbers[1], numbers[2], counts, brief);
  return 0;
}
