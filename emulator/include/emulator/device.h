// What device code asks of the library: barriers, warp collectives, matrix primitives, faults.
// Kernels call CUDA's own names, which forward to these; nothing here is for learners.
#pragma once

#include <emulator/place.h>

#include <cstddef>
#include <cstdint>

namespace emulator {

// Everything that a thread can wait at.
enum class Operation : std::uint8_t {
  kNone,
  kSyncThreads,
  kSyncThreadsCount,
  kSyncThreadsAnd,
  kSyncThreadsOr,
  kNanosleep,
  kLoadAcquire,
  kMbarrierWait,
  kMbarrierTryWait,
  kNamedBarrier,
  kWgmmaWait,
  kSetmaxnreg,
  kClusterSync,
  kSyncWarp,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kMatchAny,
  kMatchAll,
  kReduceAdd,
  kReduceMin,
  kReduceMax,
  kReduceMinSigned,
  kReduceMaxSigned,
  kReduceAnd,
  kReduceOr,
  kReduceXor,
  kLdmatrix1,
  kLdmatrix2,
  kLdmatrix4,
  kLdmatrixTrans1,
  kLdmatrixTrans2,
  kLdmatrixTrans4,
  kMma,
  kMmaE4m3,
  kStmatrix4,
  kStmatrixTrans4,
  kElect,
};

int sync_threads(Operation operation, bool predicate, Place place);
void sync_warp(unsigned mask, Place place);

// Exchanges `num_words` words (1 or 2) in place; operand is the lane, delta or lane mask.
void shuffle(Operation operation,
             unsigned mask,
             std::uint32_t* words,
             int num_words,
             int operand,
             int width,
             Place place);

// Votes and reductions: one word in, the common result out.
std::uint32_t vote(Operation operation, unsigned mask, std::uint32_t value, Place place);

// match_any and match_all: the lanes of equal value; for match_all 0 unless all are equal.
std::uint32_t match(Operation operation, unsigned mask, std::uint64_t value, Place place);

void ldmatrix(Operation operation, std::uint32_t* registers, const void* row, Place place);
void stmatrix(Operation operation, const std::uint32_t* registers, void* row, Place place);
void mma_m16n8k16(float* d, const std::uint32_t* a, const std::uint32_t* b, Place place);
void mma_m16n8k32_e4m3(float* d, const std::uint32_t* a, const std::uint32_t* b, Place place);

// One copy of 16 bytes, of zeros if `valid` is false. It happens at the wait, and the destination
// is garbage until then.
void cp_async16(void* shared, const void* global, bool valid, Place place);
void cp_async_commit();
void cp_async_wait(int pending_groups);

unsigned char* dynamic_shared();
std::uint32_t shared_address(const void* pointer, Place place);
int load_acquire(const std::int32_t* flag, Place place);
void add_release(std::int32_t* flag, int value);
void nanosleep(Place place);
long long clock();
[[noreturn]] void trap(Place place);
[[noreturn]] void misaligned(const char* function,
                             const void* address,
                             std::size_t alignment,
                             Place place);

}  // namespace emulator
