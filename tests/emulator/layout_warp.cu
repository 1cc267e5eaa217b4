// Shuffles, votes, matches and reductions of a warp.
#include <cuda_runtime.h>

#include "layout.h"

namespace layout {

namespace {

// ---- Shuffles

enum Shuffle { kIndex, kUp, kDown, kXor };

// Large enough to use both words of eight-byte types.
template <class T>
__host__ __device__ T lane_value(int lane) {
  return static_cast<T>(lane + 1) * static_cast<T>(sizeof(T) == 8 ? 5000000011ll : 40503);
}

template <class T>
__global__ void shuffle_kernel(T* out, Shuffle kind, int operand, int width) {
  const int lane = static_cast<int>(threadIdx.x);
  const T value = lane_value<T>(lane);
  const auto delta = static_cast<unsigned>(operand);
  if (kind == kIndex) out[lane] = __shfl_sync(kAll, value, operand, width);
  if (kind == kUp) out[lane] = __shfl_up_sync(kAll, value, delta, width);
  if (kind == kDown) out[lane] = __shfl_down_sync(kAll, value, delta, width);
  if (kind == kXor) out[lane] = __shfl_xor_sync(kAll, value, operand, width);
}

// The PTX manual's formulas: the source lane, the own lane where that is out of range.
int shuffle_source(Shuffle kind, int lane, int operand, int width) {
  const int first = lane & ~(width - 1);
  const int last = first + width - 1;
  switch (kind) {
    case kIndex:
      return first + operand % width;
    case kUp:
      return lane - operand >= first ? lane - operand : lane;
    case kDown:
      return lane + operand <= last ? lane + operand : lane;
    default:
      return (lane ^ operand) <= last ? lane ^ operand : lane;
  }
}

template <class T>
void check_shuffle(const char* type) {
  constexpr const char* kNames[] = {"shfl", "shfl_up", "shfl_down", "shfl_xor"};
  for (const Shuffle kind : {kIndex, kUp, kDown, kXor}) {
    int wrong = 0;
    for (int width = 1; width <= kLanes; width *= 2) {
      for (const int operand : {0, 1, 2, 3, 5, 8, 13, 16, 21, 31}) {
        const auto out = run(shuffle_kernel<T>, 1, kLanes, kLanes, kind, operand, width);
        for (int lane = 0; lane < kLanes; ++lane) {
          const T want = lane_value<T>(shuffle_source(kind, lane, operand, width));
          wrong += out[static_cast<std::size_t>(lane)] != want ? 1 : 0;
        }
      }
    }
    char name[64];
    std::snprintf(name, sizeof name, "%s %s", kNames[kind], type);
    report(name, wrong);
  }
}

// ---- Votes, matches and reductions

constexpr int kVotes = 14;

__global__ void vote_kernel(unsigned* out) {
  const unsigned lane = threadIdx.x;
  unsigned* o = out + lane * kVotes;
  const unsigned value = hash(lane + 7);
  const int is_signed = static_cast<int>(value);
  o[0] = __ballot_sync(kAll, lane % 3 == 0 ? 4 : 0);
  o[1] = static_cast<unsigned>(__any_sync(kAll, lane == 9) + 2 * __any_sync(kAll, lane > 40));
  o[2] = static_cast<unsigned>(__all_sync(kAll, lane != 9) + 2 * __all_sync(kAll, lane < 40));
  o[3] = __reduce_add_sync(kAll, value);
  o[4] = __reduce_min_sync(kAll, value);
  o[5] = __reduce_max_sync(kAll, value);
  o[6] = static_cast<unsigned>(__reduce_min_sync(kAll, is_signed));
  o[7] = static_cast<unsigned>(__reduce_max_sync(kAll, is_signed));
  o[8] = __reduce_and_sync(kAll, value | 0x00ff0000u);
  o[9] = __reduce_or_sync(kAll, value & 0x00ff00ffu);
  o[10] = __reduce_xor_sync(kAll, value);
  o[11] = __match_any_sync(kAll, static_cast<int>(lane % 5));
  o[12] = __match_any_sync(kAll, static_cast<unsigned long long>(lane % 4) << 33);
  int all = 0;
  o[13] = __match_all_sync(kAll, 5, &all) + static_cast<unsigned>(all);
  o[13] ^= __match_all_sync(kAll, static_cast<int>(lane / 31), &all) + static_cast<unsigned>(all);
}

void check_votes() {
  constexpr const char* kNames[kVotes] = {"ballot",
                                          "any",
                                          "all",
                                          "reduce_add",
                                          "reduce_min unsigned",
                                          "reduce_max unsigned",
                                          "reduce_min int",
                                          "reduce_max int",
                                          "reduce_and",
                                          "reduce_or",
                                          "reduce_xor",
                                          "match_any int",
                                          "match_any unsigned long long",
                                          "match_all"};
  unsigned want[kLanes][kVotes] = {};
  unsigned common[kVotes] = {0, 1, 2, 0, kAll, 0, 0x7fffffffu, 0x80000000u, kAll, 0, 0};
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const unsigned value = hash(lane + 7);
    const int is_signed = static_cast<int>(value);
    if (lane % 3 == 0) common[0] |= 1u << lane;
    common[3] += value;
    if (value < common[4]) common[4] = value;
    if (value > common[5]) common[5] = value;
    if (is_signed < static_cast<int>(common[6])) common[6] = value;
    if (is_signed > static_cast<int>(common[7])) common[7] = value;
    common[8] &= value | 0x00ff0000u;
    common[9] |= value & 0x00ff00ffu;
    common[10] ^= value;
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i <= 10; ++i) want[lane][i] = common[i];
    for (unsigned other = 0; other < kLanes; ++other) {
      if (other % 5 == lane % 5) want[lane][11] |= 1u << other;
      if (other % 4 == lane % 4) want[lane][12] |= 1u << other;
    }
    want[lane][13] = kAll + 1u;
  }
  const auto out = run(vote_kernel, 1, kLanes, kLanes * kVotes);
  for (int i = 0; i < kVotes; ++i) {
    int wrong = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      wrong += out[static_cast<std::size_t>(lane * kVotes + i)] != want[lane][i] ? 1 : 0;
    }
    report(kNames[i], wrong);
  }
}

}  // namespace

void check_warp() {
  check_shuffle<int>("int");
  check_shuffle<unsigned>("unsigned");
  check_shuffle<long long>("long long");
  check_shuffle<float>("float");
  check_shuffle<double>("double");
  check_votes();
}

}  // namespace layout
