// The ideas of content/start.md, one kernel each. Run one with: ./drill try warp
//
// The kernels are written as the drills are: launch() starts them, dynamic shared memory and PTX
// come from drills/. On a GPU the threads print in an order of their own, and what is wrong on
// purpose (shared-wrong, copy-wrong, barrier-wrong) may pass, or stop the device.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstring>

#include <drills/launch.h>
#include <drills/ptx.h>

#ifndef __CUDACC__
#include <emulator/control.h>
#endif

namespace {

using moe::launch;

constexpr unsigned kAllLanes = 0xffffffffu;

// Says what failed; errors stick, so only the first says something new.
void check(cudaError_t status, const char* what) {
  static bool said = false;
  if (status == cudaSuccess || said) return;
  said = true;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
#ifndef __CUDACC__
  std::printf("%s\n", emulator::fault());
#endif
}

// Device memory with a copy on the host, for programs this small.
template <class T, int COUNT>
struct Array {
  T host[COUNT] = {};
  T* device = nullptr;

  Array() { check(cudaMalloc(&device, sizeof host), "cudaMalloc"); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(device); }
  void to_device() { cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice); }
  void to_host() {
    check(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost), "the kernel failed");
  }
};

// ---- threads: everybody runs the same function and asks who it is

__global__ void who_kernel() {
  std::printf("block %d, thread %d: element %d\n", static_cast<int>(blockIdx.x),
              static_cast<int>(threadIdx.x),
              static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x));
}

void try_threads() {
  check(launch(who_kernel, dim3(2), dim3(3), 0, nullptr), "launch");
  check(cudaDeviceSynchronize(), "wait");
}

// ---- memory: host and device are apart; the grid is rounded up, so the last threads have no work

__global__ void double_kernel(float* values, int count) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= count) return;
  values[i] *= 2;
}

void try_memory() {
  Array<float, 10> numbers;
  for (int i = 0; i < 10; ++i) numbers.host[i] = static_cast<float>(i);
  numbers.to_device();
  const int blocks = (10 + 3) / 4;
  check(launch(double_kernel, dim3(blocks), dim3(4), 0, nullptr, numbers.device, 10), "launch");
  std::printf("before the copy: %g\n", numbers.host[9]);
  numbers.to_host();
  std::printf("after it:        %g, by %d blocks of 4 threads\n", numbers.host[9], blocks);
}

// ---- stream: a launch returns at once; what is queued on one stream runs in order

__global__ void add_kernel(int* counter, int amount) {
  *counter = *counter * 10 + amount;
}

void try_stream() {
  Array<int, 1> counter;
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaMemsetAsync(counter.device, 0, sizeof(int), stream), "memset");
  for (int i = 1; i <= 3; ++i) {
    check(launch(add_kernel, dim3(1), dim3(1), 0, stream, counter.device, i), "launch");
  }
  check(cudaStreamSynchronize(stream), "wait");
  counter.to_host();
  std::printf("one after the other: %d\n", counter.host[0]);
  cudaStreamDestroy(stream);
}

// ---- warp: 32 threads read each other's registers

__global__ void warp_kernel(int* sums) {
  const int lane = static_cast<int>(threadIdx.x);
  int sum = lane;
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
    if (lane == 0) std::printf("distance %2d: lane 0 has %d\n", distance, sum);
  }
  sums[lane] = sum;
}

void try_warp() {
  Array<int, 32> sums;
  check(launch(warp_kernel, dim3(1), dim3(32), 0, nullptr, sums.device), "launch");
  sums.to_host();
  std::printf("lane 31 has %d: the sum of 0 to 31, in five steps\n", sums.host[31]);
}

// ---- shared: the threads of a block meet in shared memory, at a barrier

template <bool BARRIER>
__global__ void reverse_kernel(float* values) {
  __shared__ float tile[8];
  const int i = static_cast<int>(threadIdx.x);
  tile[i] = values[i];
  if (BARRIER) __syncthreads();  // everybody has written before anybody reads
  values[i] = tile[7 - i];
}

template <bool BARRIER>
void try_shared() {
  Array<float, 8> numbers;
  for (int i = 0; i < 8; ++i) numbers.host[i] = static_cast<float>(i);
  numbers.to_device();
  check(launch(reverse_kernel<BARRIER>, dim3(1), dim3(8), 0, nullptr, numbers.device), "launch");
  numbers.to_host();
  for (const float number : numbers.host) {
    if (number == number) {
      std::printf(" %g", number);
    } else {
      std::printf(" NaN");
    }
  }
  std::printf("\n");
}

// ---- barrier-wrong: a barrier that not everybody reaches

__global__ void divergent_kernel() {
  if (threadIdx.x < 40) __syncthreads();
}

void try_barrier() {
  check(launch(divergent_kernel, dim3(1), dim3(64), 0, nullptr), "launch");
  check(cudaDeviceSynchronize(), "the kernel failed");
}

// ---- atomic: many threads, one counter

template <bool ATOMIC>
__global__ void count_kernel(int* counts) {
  int* mine = &counts[threadIdx.x % 3];
  if (ATOMIC) {
    atomicAdd(mine, 1);
  } else {
    const int old = *mine;
    __syncthreads();  // all have read; in real code chance decides when
    *mine = old + 1;
  }
}

void try_atomic() {
  Array<int, 3> counts;
  counts.to_device();
  check(launch(count_kernel<false>, dim3(1), dim3(64), 0, nullptr, counts.device), "launch");
  counts.to_host();
  std::printf("read, add, write: %d %d %d\n", counts.host[0], counts.host[1], counts.host[2]);
  std::memset(counts.host, 0, sizeof counts.host);
  counts.to_device();
  check(launch(count_kernel<true>, dim3(1), dim3(64), 0, nullptr, counts.device), "launch");
  counts.to_host();
  std::printf("atomicAdd:        %d %d %d\n", counts.host[0], counts.host[1], counts.host[2]);
}

// ---- copy: cp.async copies 16 bytes while the thread goes on

template <bool WAIT>
__global__ void copy_kernel(float* out, const float* in) {
  __shared__ __align__(16) float tile[4];
  moe::cp_async16(tile, in);
  moe::cp_async_commit();
  if (WAIT) moe::cp_async_wait<0>();
  out[0] = tile[0] + tile[3];
}

template <bool WAIT>
void try_copy() {
  Array<float, 4> in;
  Array<float, 1> out;
  for (int i = 0; i < 4; ++i) in.host[i] = static_cast<float>(i + 1);
  in.to_device();
  check(launch(copy_kernel<WAIT>, dim3(1), dim3(1), 0, nullptr, out.device, in.device), "launch");
  out.to_host();
  if (WAIT) std::printf("1 + 4 = %g\n", out.host[0]);
}

// ---- mma: a warp multiplies 16 x 16 by 16 x 8

__global__ void mma_kernel(float* out) {
  __shared__ __align__(16) __nv_bfloat16 a[16][16];
  __shared__ __align__(16) __nv_bfloat16 b[8][16];  // column n of B is row n here
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) {
    a[i / 16][i % 16] = __float2bfloat16(i % 16 == 0 ? static_cast<float>(i / 16) : 0.0f);
  }
  for (int i = lane; i < 128; i += 32) {
    b[i / 16][i % 16] = __float2bfloat16(i % 16 == 0 ? static_cast<float>(i / 16 * 100) : 0.0f);
  }
  __syncwarp();
  uint32_t fragment_a[4];
  uint32_t fragment_b[2];
  moe::ldmatrix_x4(fragment_a, &a[lane % 16][lane / 16 * 8]);
  moe::ldmatrix_x2(fragment_b, &b[lane % 8][lane / 8 % 2 * 8]);
  float sums[4] = {};
  moe::mma_m16n8k16(sums, fragment_a, fragment_b);
  if (lane == 5) {
    for (const float sum : sums) *out++ = sum;
  }
}

void try_mma() {
  Array<float, 4> sums;
  check(launch(mma_kernel, dim3(1), dim3(32), 0, nullptr, sums.device), "launch");
  sums.to_host();
  std::printf("out[row][column] is row * column * 100\n");
  std::printf("lane 5 holds row 1, columns 2, 3: %g %g\n", sums.host[0], sums.host[1]);
  std::printf("         and row 9, columns 2, 3: %g %g\n", sums.host[2], sums.host[3]);
}

struct Idea {
  const char* name;
  void (*run)();
};

constexpr Idea kIdeas[] = {
    {"threads", try_threads},
    {"memory", try_memory},
    {"stream", try_stream},
    {"warp", try_warp},
    {"shared", try_shared<true>},
    {"shared-wrong", try_shared<false>},
    {"barrier-wrong", try_barrier},
    {"atomic", try_atomic},
    {"copy", try_copy<true>},
    {"copy-wrong", try_copy<false>},
    {"mma", try_mma},
};

}  // namespace

int main(int argc, char** argv) {
#ifndef __CUDACC__
  emulator::options().workers = 1;  // blocks one after another: what is printed is repeatable
#endif
  for (const Idea& idea : kIdeas) {
    if (argc != 2) {
      std::printf("%s\n", idea.name);
    } else if (std::strcmp(idea.name, argv[1]) == 0) {
      idea.run();
      return 0;
    }
  }
  return argc == 2 ? 2 : 0;
}
