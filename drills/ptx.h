// ptx.h: the PTX instructions that the drills use, one function each.
//
// CUDA version (sm_80 and newer). The emulator's twin is emulator/include/drills/ptx.h. Names and
// layouts are those of the PTX ISA manual; lane = threadIdx.x % 32, g = lane / 4, t = lane % 4.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace moe {

// The 32-bit address in the shared window that PTX wants.
__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// cp.async: starts a copy of 16 bytes from global to shared memory, both 16-byte aligned. Where
// `valid` is false nothing is read and 16 zero bytes arrive instead. The bytes may be used only
// after this thread committed and waited; other threads need a barrier after that.
__device__ __forceinline__ void cp_async16(void* shared, const void* global, bool valid = true) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(global), "r"(valid ? 16 : 0)
               : "memory");
}

// Closes this thread's group of copies; a group may be empty.
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until all of this thread's groups but the newest N have arrived.
template <int N>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ldmatrix: lane i of the first 8 * X lanes gives the address of row i % 8 of 8x8 matrix i / 8
// (eight 16-bit elements, 16-byte aligned). r[j] then holds row g, columns 2t and 2t + 1 of matrix
// j.
__device__ __forceinline__ void ldmatrix_x1(uint32_t (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// The same, transposed: r[j] holds rows 2t and 2t + 1 of column g of matrix j.
__device__ __forceinline__ void ldmatrix_x1_trans(uint32_t (&r)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

// stmatrix (sm_90), ldmatrix the other way round: lane i gives the address of row i % 8 of matrix
// i / 8, r[j] holds row g, columns 2t and 2t + 1 of matrix j.
__device__ __forceinline__ void stmatrix_x4(void* row, const uint32_t (&r)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(shared_address(row)),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
      : "memory");
#else
  __trap();
#endif
}

// The same, transposed: r[j] holds rows 2t and 2t + 1 of column g of matrix j.
__device__ __forceinline__ void stmatrix_x4_trans(void* row, const uint32_t (&r)[4]) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(
                   shared_address(row)),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
#else
  __trap();
#endif
}

// A flag in global memory that one block sets and another waits for: what was written before the
// add is seen after a load that returns it.
__device__ __forceinline__ int load_acquire(const int32_t* flag) {
  int value;
  asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}
__device__ __forceinline__ void add_release(int32_t* flag, int value) {
  asm volatile("red.release.gpu.global.add.s32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// A counter in global memory: adds, and returns what was there.
__device__ __forceinline__ int add_relaxed(int32_t* counter, int value) {
  int before;
  asm volatile("atom.relaxed.gpu.global.add.s32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(value)
               : "memory");
  return before;
}

// mma.sync m16n8k16, bf16 in, fp32 accumulate: d += a * b, by one warp.
//   a (16 x 16): a[i] holds row g + 8 * (i % 2), columns 2t + 8 * (i / 2) and the next
//   b (16 x 8):  b[i] holds rows 2t + 8 * i and the next, column g
//   d (16 x 8):  d[i] is row g + 8 * (i / 2), column 2t + i % 2
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4],
                                             const uint32_t (&a)[4],
                                             const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// 2^x and 1/x by the special function unit, one instruction each, right to about 2^-22 of the
// value; subnormal inputs and results are zeros.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// The larger one, or NaN if one is NaN.
__device__ __forceinline__ float max_nan(float x, float y) {
  float z;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(z) : "f"(x), "f"(y));
  return z;
}

// Two e4m3 codes, the low (HIGH = 0) or high two of four, as two halves; exact.
template <int HIGH>
__device__ __forceinline__ uint32_t halves_of_e4m3(uint32_t codes) {
  uint32_t halves;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  asm("{\n.reg .b16 pair<2>;\nmov.b32 {pair0, pair1}, %1;\ncvt.rn.f16x2.e4m3x2 %0, pair%2;\n}"
      : "=r"(halves)
      : "r"(codes), "n"(HIGH));
#else
  // Shift exponent and mantissa of a code to where a half has them, and the half is 2^-8 times the
  // value: its exponent has a bias of 15, that of e4m3 one of 7. Times 2^8 is exact, of subnormals
  // too. Only 0x7f is no number: 0x80 more and it carries into bit 14, which makes the exponent all
  // ones.
  const uint32_t wide = __byte_perm(codes, 0, HIGH ? 0x3424 : 0x1404);  // each code a high byte
  const uint32_t magnitudes = (wide >> 1) & 0x3f803f80u;
  const uint32_t nan = ((magnitudes + 0x00800080u) & 0x40004000u) >> 1;
  asm("mul.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(magnitudes), "r"(0x5c005c00u));
  halves |= (wide & 0x80008000u) | nan;
#endif
  return halves;
}

// mma.sync m16n8k32, e4m3 in, fp32 accumulate: d += a * b, by one warp.
//   a (16 x 32): a[i] holds row g + 8 * (i % 2), columns 4t + 16 * (i / 2) and the next three
//   b (32 x 8):  b[i] holds rows 4t + 16 * i and the next three, column g
//   d (16 x 8):  as for m16n8k16
// Tensor cores of 8.9 and 12.0 multiply codes; there each d is right to about 14 bits. Those of 8.0
// and of 9.0 (outside wgmma) do not: codes become halves and two m16n8k16 multiply them, at the
// rate of bf16. (For 9.0 nvcc makes the same of the instruction, plus an addition for each d.)
// Which lane holds which term of a sum does not matter as long as a and b agree: the lower two of a
// lane's four codes take the place of the first 8 of 16 terms, the upper two that of the others.
__device__ __forceinline__ void mma_m16n8k32_e4m3(float (&d)[4],
                                                  const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890 && __CUDA_ARCH__ != 900
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(halves_of_e4m3<0>(a[2 * i])), "r"(halves_of_e4m3<0>(a[2 * i + 1])),
          "r"(halves_of_e4m3<1>(a[2 * i])), "r"(halves_of_e4m3<1>(a[2 * i + 1])),
          "r"(halves_of_e4m3<0>(b[i])), "r"(halves_of_e4m3<1>(b[i])));
  }
#endif
}

}  // namespace moe
