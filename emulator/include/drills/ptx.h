// The PTX instructions that the drills use: the emulator's twin of drills/ptx.h.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace moe {

// The 32-bit address in the shared window.
inline std::uint32_t shared_address(const void* pointer,
                                    ::emulator::Place place = ::emulator::Place::here()) {
  return ::emulator::shared_address(pointer, place);
}

// cp.async.cg.shared.global, 16 bytes; zeros instead if `valid` is false (gmem is not read then).
inline void cp_async16(void* smem,
                       const void* gmem,
                       bool valid = true,
                       ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::cp_async16(smem, gmem, valid, place);
}

inline void cp_async_commit() {
  ::emulator::cp_async_commit();
}

// Waits until at most N of the groups committed last are still under way.
template <int N>
inline void cp_async_wait() {
  static_assert(N >= 0, "cp_async_wait<N>(): N is a number of groups");
  ::emulator::cp_async_wait(N);
}

// ldmatrix.sync.aligned.m8n8: lanes 0..8*N-1 give the addresses of the rows.
inline void ldmatrix_x1(std::uint32_t (&r)[1],
                        const void* row,
                        ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::ldmatrix(::emulator::Operation::kLdmatrix1, r, row, place);
}

inline void ldmatrix_x2(std::uint32_t (&r)[2],
                        const void* row,
                        ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::ldmatrix(::emulator::Operation::kLdmatrix2, r, row, place);
}

inline void ldmatrix_x4(std::uint32_t (&r)[4],
                        const void* row,
                        ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::ldmatrix(::emulator::Operation::kLdmatrix4, r, row, place);
}

inline void ldmatrix_x1_trans(std::uint32_t (&r)[1],
                              const void* row,
                              ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::ldmatrix(::emulator::Operation::kLdmatrixTrans1, r, row, place);
}

inline void ldmatrix_x2_trans(std::uint32_t (&r)[2],
                              const void* row,
                              ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::ldmatrix(::emulator::Operation::kLdmatrixTrans2, r, row, place);
}

inline void ldmatrix_x4_trans(std::uint32_t (&r)[4],
                              const void* row,
                              ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::ldmatrix(::emulator::Operation::kLdmatrixTrans4, r, row, place);
}

// stmatrix.sync.aligned.m8n8.x4: ldmatrix the other way round.
inline void stmatrix_x4(void* row,
                        const std::uint32_t (&r)[4],
                        ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::stmatrix(::emulator::Operation::kStmatrix4, r, row, place);
}
inline void stmatrix_x4_trans(void* row,
                              const std::uint32_t (&r)[4],
                              ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::stmatrix(::emulator::Operation::kStmatrixTrans4, r, row, place);
}

// A flag in global memory between blocks. A load lets other threads and blocks run: blocks that
// wait for each other for ever are reported.
inline int load_acquire(const std::int32_t* flag,
                        ::emulator::Place place = ::emulator::Place::here()) {
  return ::emulator::load_acquire(flag, place);
}
inline void add_release(std::int32_t* flag, int value) {
  ::emulator::add_release(flag, value);
}
inline int add_relaxed(std::int32_t* counter, int value) {
  return atomicAdd(counter, value);
}

// ex2.approx.ftz and rcp.approx.ftz: 2^x and 1/x, subnormal inputs and results being zeros. A GPU's
// differ in the last bits.
inline float flush_subnormal(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}
inline float exp2_approx(float x) {
  return flush_subnormal(std::exp2(flush_subnormal(x)));
}
inline float reciprocal_approx(float x) {
  return flush_subnormal(1.0f / flush_subnormal(x));
}

// max.NaN.f32.
inline float max_nan(float x, float y) {
  return std::isnan(x) || std::isnan(y) ? std::numeric_limits<float>::quiet_NaN() : std::fmax(x, y);
}

// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32: d += a * b.
inline void mma_m16n8k16(float (&d)[4],
                         const std::uint32_t (&a)[4],
                         const std::uint32_t (&b)[2],
                         ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::mma_m16n8k16(d, a, b, place);
}

// mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32: d += a * b.
inline void mma_m16n8k32_e4m3(float (&d)[4],
                              const std::uint32_t (&a)[4],
                              const std::uint32_t (&b)[2],
                              ::emulator::Place place = ::emulator::Place::here()) {
  ::emulator::mma_m16n8k32_e4m3(d, a, b, place);
}

}  // namespace moe
