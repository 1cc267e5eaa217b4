// Mistakes of one thread alone: addresses, unwritten memory, arithmetic. See fault_case.h.
#include <cassert>
#include <stdexcept>

#include "fault_case.h"

namespace {

using check::Arrays;

// case write_behind_rows, memory: out of bounds
__global__ void write_behind_rows(Arrays a) {
  const int row = static_cast<int>(threadIdx.x) / 8;       // 5 rows of threads, 4 of the array
  a.out[row * 8 + static_cast<int>(threadIdx.x) % 8] = 1;  // <-
}
FAULT_CASE(write_behind_rows, 1, 40, 0)

// case traced_write_behind_rows, order: out of bounds
__global__ void traced_write_behind_rows(Arrays a) {
  a.out[threadIdx.x] = 1;  // <-
}
FAULT_CASE(traced_write_behind_rows, 1, 40, 0)

// case read_before_rows, memory: out of bounds
__global__ void read_before_rows(Arrays a) {
  const int row = static_cast<int>(threadIdx.x) - 1;
  a.out[threadIdx.x] = a.x[row * 8];  // <-
}
FAULT_CASE(read_before_rows, 1, 4, 0)

// case wide_read_over_the_end, memory: out of bounds
__global__ void wide_read_over_the_end(Arrays a) {
  const float4 four = *reinterpret_cast<const float4*>(a.x + 32);  // <-
  a.out[0] = four.x;
}
FAULT_CASE(wide_read_over_the_end, 1, 1, 0)

// case static_shared_overrun, memory: undefined behaviour
__global__ void static_shared_overrun(Arrays a) {
  __shared__ float tile[32];
  tile[threadIdx.x] = 1;  // <-
  __syncthreads();
  a.out[0] = tile[0];
}
FAULT_CASE(static_shared_overrun, 1, 40, 0)

// case static_shared_overrun_by_pointer, memory: out of bounds
__device__ void set_to_one(float* place) {
  *place = 1;  // <-
}
__global__ void static_shared_overrun_by_pointer(Arrays a) {
  __shared__ float tile[32];
  float* first = tile;
  set_to_one(first + threadIdx.x);
  __syncthreads();
  a.out[0] = tile[0];
}
FAULT_CASE(static_shared_overrun_by_pointer, 1, 40, 0)

// case dynamic_shared_overrun, memory: out of bounds
__global__ void dynamic_shared_overrun(Arrays a) {
  auto* tile = moe::dynamic_shared<float>();
  tile[threadIdx.x] = 1;  // <-
  __syncthreads();
  a.out[0] = tile[0];
}
FAULT_CASE(dynamic_shared_overrun, 1, 64, 128)

// case local_array_overrun, memory: undefined behaviour
__global__ void local_array_overrun(Arrays a) {
  float sums[4] = {};
  for (int i = 0; i <= static_cast<int>(threadIdx.x) + 3; ++i) {
    sums[i] += a.x[i];  // <-
  }
  a.out[threadIdx.x] = sums[0] + sums[3];
}
FAULT_CASE(local_array_overrun, 1, 2, 0)

// case null_pointer, memory: undefined behaviour
__global__ void null_pointer(Arrays a) {
  const float* w = a.flag == nullptr ? a.x : nullptr;
  a.out[0] = *w;  // <-
}
FAULT_CASE(null_pointer, 1, 1, 0)

// case wild_pointer, order: memory fault
__global__ void wild_pointer(Arrays a) {
  auto* where = reinterpret_cast<float*>(0x7000000000);
  *where = a.x[0];  // <-
}
FAULT_CASE(wild_pointer, 1, 1, 0)

// case division_by_zero, order: arithmetic
__global__ void division_by_zero(Arrays a) {
  const int top_k = static_cast<int>(threadIdx.x) - 1;
  a.flag[0] = 4 / top_k;  // <-
}
FAULT_CASE(division_by_zero, 1, 2, 0)

// case offset_in_int, memory: undefined behaviour
__global__ void offset_in_int(Arrays a) {
  const int rows = 70000 + static_cast<int>(threadIdx.x);
  const int offset = rows * rows;  // <-
  a.out[0] = a.x[offset & 1];
}
FAULT_CASE(offset_in_int, 1, 1, 0)

// case shift_too_far, memory: undefined behaviour
__global__ void shift_too_far(Arrays a) {
  const int lane = static_cast<int>(threadIdx.x);
  a.flag[lane % 2] = static_cast<int>(1u << (lane + 1));  // <-
}
FAULT_CASE(shift_too_far, 1, 32, 0)

// case misaligned_vector, memory: undefined behaviour
__global__ void misaligned_vector(Arrays a) {
  *reinterpret_cast<float4*>(a.out + 1) = float4{1, 2, 3, 4};  // <-
}
FAULT_CASE(misaligned_vector, 1, 1, 0)

// case stack_overflow, order: stack overflow
__device__ float deep(int n) {
  volatile float frame[1024];
  frame[n % 1024] = static_cast<float>(n);
  return n == 0 ? 0 : deep(n - 1) + frame[n % 1024];  // <-
}
__global__ void stack_overflow(Arrays a) {
  a.out[0] = deep(1000);
}
FAULT_CASE(stack_overflow, 1, 1, 0)

// case assertion, order: assert
__global__ void assertion(Arrays a) {
  assert(a.x[0] > 5);  // <-
}
FAULT_CASE(assertion, 1, 1, 0)

// case thrown, order: exception
__global__ void thrown(Arrays a) {
  if (a.x[0] < 5) throw std::runtime_error("no");
}
FAULT_CASE(thrown, 1, 1, 0)

// case unwritten_output_read, order: uninitialised read
__global__ void unwritten_output_read(Arrays a) {
  a.out[threadIdx.x] += a.x[threadIdx.x];  // <-
}
FAULT_CASE(unwritten_output_read, 1, 8, 0)

// case unwritten_static_shared, order: uninitialised read
__global__ void unwritten_static_shared(Arrays a) {
  __shared__ float sums[32];
  if (threadIdx.x < 31) sums[threadIdx.x] = 0;
  __syncthreads();
  a.out[threadIdx.x] = sums[threadIdx.x];  // <-
}
FAULT_CASE(unwritten_static_shared, 1, 32, 0)

// case unwritten_dynamic_shared, order: uninitialised read
__global__ void unwritten_dynamic_shared(Arrays a) {
  auto* tile = moe::dynamic_shared<float>();
  for (int i = static_cast<int>(threadIdx.x); i < 24; i += 8) tile[i] = a.x[i];
  __syncthreads();
  a.out[threadIdx.x] = tile[threadIdx.x + 24];  // <-
}
FAULT_CASE(unwritten_dynamic_shared, 1, 8, 128)

// case what_the_last_block_left, order: uninitialised read
__global__ void what_the_last_block_left(Arrays a) {
  __shared__ float kept;
  if (blockIdx.x == 0) kept = a.x[0];
  a.out[blockIdx.x] = kept;  // <-
}
FAULT_CASE(what_the_last_block_left, 2, 1, 0)

}  // namespace
