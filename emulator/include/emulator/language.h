// CUDA's qualifiers and built-in variables.
#pragma once

#include <vector_types.h>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATOR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATOR_ASAN 1
#endif
#endif

// These names are CUDA's own, reserved or not. __noinline__ is missing: libstdc++ 12 writes
// __attribute__((__noinline__)), which a macro of that name would break.
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))

// One block runs on one OS thread, so a thread-local is what a block shares. AddressSanitizer puts
// no red zones around thread-locals; its builds have one worker and a plain static instead.
#ifdef EMULATOR_ASAN
#define __shared__ static
#else
#define __shared__ static thread_local
#endif

// Plain thread-locals, which the scheduler writes when it resumes a thread: debuggers can print
// them and use them in conditions. A CUDA thread never leaves its OS thread, so that the compiler
// may keep their addresses across a wait.
inline thread_local uint3 threadIdx{0, 0, 0};
inline thread_local uint3 blockIdx{0, 0, 0};
inline thread_local dim3 blockDim{};
inline thread_local dim3 gridDim{};
inline constexpr int warpSize = 32;
