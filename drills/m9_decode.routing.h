// m9_decode.routing.h: given to m9. What its kernels hand to each other, and route: m1's top-k and,
// for each expert that was hit, who chose it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <drills/choose_experts.h>
#include <drills/dependent_launch.h>
#include <drills/launch.h>
#include <drills/layer_arrays.h>
#include <drills/m9_decode.h>

namespace moe::DRILL_SIDE::m9 {

// Bit t: token t chose the expert. That is all of the routing that T <= 64 needs.
using TokenMask = unsigned long long;
static_assert(sizeof(TokenMask) * 8 >= kMaxTokens, "a bit for each token");

// An expert that was hit. Runs are in ascending order of experts.
struct alignas(16) Run {
  int expert;
  int first;        // of its ids, in flat_ids
  int count;        // of its ids, 1 to T
  unsigned tokens;  // the first 32 bits of its mask
};

struct Arrays {
  int32_t* num_runs;    // [1]
  Run* runs;            // [min(E, T*K)]
  int32_t* flat_ids;    // [T*K] by expert, in a run by token
  float* topk_weights;  // [T*K]
  __nv_bfloat16* h;     // [T*K, I]
  float* y;             // [splits, T*K, H], T > 4 only
  size_t bytes;
};

struct Sizes {
  int num_tokens;
  int num_experts;
  int top_k;
  int hidden_size;
  int intermediate_size;
};

inline constexpr int kPieceRows = 16;     // of W, that a warp multiplies at a time above
inline constexpr int kMaxGemvTokens = 4;  // up to here multiply-adds keep up with the memory

// Into how many parts GEMM2 (T > 4) cuts I: where few experts have few rows, there would be about
// as many pieces as warps, and the last ones would run alone. Of sizes only: neither the routing
// nor the GPU may change the order of additions.
inline int splits_of(const Sizes& s) {
  if (s.num_tokens <= kMaxGemvTokens) return 0;
  constexpr int64_t kWanted = 8192;  // about four for each warp of 132 multiprocessors
  constexpr int kMostSplits = 8;
  constexpr int kLeastColumns = 512;  // of a part
  const int64_t ids = int64_t{s.num_tokens} * s.top_k;
  const int64_t experts = s.num_experts < ids ? s.num_experts : ids;
  const int64_t pieces = experts * ((s.hidden_size + kPieceRows - 1) / kPieceRows);
  int splits = static_cast<int>(kWanted / pieces);
  if (splits > kMostSplits) splits = kMostSplits;
  if (splits > s.intermediate_size / kLeastColumns) splits = s.intermediate_size / kLeastColumns;
  return splits < 1 ? 1 : splits;
}

inline Arrays arrays_of(void* workspace, const Sizes& s) {
  const size_t ids = static_cast<size_t>(s.num_tokens) * static_cast<size_t>(s.top_k);
  const auto experts = static_cast<size_t>(s.num_experts);
  WorkspaceParts parts(workspace);
  Arrays a = {};
  a.num_runs = parts.take<int32_t>(1);
  a.runs = parts.take<Run>(ids < experts ? ids : experts);
  a.flat_ids = parts.take<int32_t>(ids);
  a.topk_weights = parts.take<float>(ids);
  a.h = parts.take<__nv_bfloat16>(ids * static_cast<size_t>(s.intermediate_size));
  a.y = parts.take<float>(static_cast<size_t>(splits_of(s)) * ids *
                          static_cast<size_t>(s.hidden_size));
  a.bytes = parts.bytes();
  return a;
}

// ---- Route: one block, in which every warp has some of the tokens and every thread some experts.

inline constexpr int kMaxRouteThreads = 1024;

struct RouteShared {
  TokenMask chosen_by[kMaxExperts];
  int first[kMaxExperts];  // of the expert's run
  int ids[kMaxTokens * kMaxTopK];
  int warp_totals[kMaxRouteThreads / kWarpSize];
};

// Yours. Called for each slot, in any order, by different threads: notes that token `token` chose
// `expert`. chosen_by is 0 so far.
__device__ void note_choice(RouteShared& shared, int token, int expert);
// Yours. Called for each slot when all are noted and first[] is known: writes flat_id to its place.
__device__ void place_id(const RouteShared& shared, const Arrays& a, int flat_id, int top_k);

// The sum of `value` over all threads of the block with a smaller number.
__device__ inline int sum_before(RouteShared& shared, int value) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  int sum = value;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(distance));
    if (lane >= distance) sum += other;
  }
  if (lane == kWarpSize - 1) shared.warp_totals[warp] = sum;
  __syncthreads();
  // Every warp adds up the totals of the warps before it.
  const int total = lane < warp ? shared.warp_totals[lane] : 0;
  return sum - value + __reduce_add_sync(kAllLanes, total);
}

// The routing of all tokens, by a block of THREADS threads.
template <int PER_LANE, int THREADS>
__device__ void route(RouteShared& shared,
                      const Arrays& a,
                      const float* logits,  // [T, E]
                      const Sizes& s,
                      bool renormalize) {
  constexpr int kExpertsOfThread = kMaxExperts / THREADS;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % kWarpSize;
  const int ids = s.num_tokens * s.top_k;
  for (int e = thread; e < kMaxExperts; e += THREADS) shared.chosen_by[e] = 0;
  // A place that is never written, while blanks are left, must not send anybody astray. Runs are
  // copied as a whole, also those that there aren't.
  for (int i = thread; i < ids; i += THREADS) a.flat_ids[i] = 0;
  for (int i = thread; i < min(ids, s.num_experts); i += THREADS) a.runs[i] = {};
  __syncthreads();
  for (int token = thread / kWarpSize; token < s.num_tokens; token += THREADS / kWarpSize) {
    int id = 0;
    float weight = 0.0f;
    choose_experts<PER_LANE>(logits + static_cast<int64_t>(token) * s.num_experts, s.num_experts,
                             s.top_k, renormalize, id, weight);
    if (lane < s.top_k) {
      const int flat_id = token * s.top_k + lane;
      shared.ids[flat_id] = id;
      a.topk_weights[flat_id] = weight;
      note_choice(shared, token, id);
    }
  }
  __syncthreads();
  // One sum gives both: experts that were hit in the upper half, ids in the lower.
  const auto own_of = [&](int expert) {
    const int count = __popcll(shared.chosen_by[expert]);
    return count > 0 ? (1 << 16) + count : 0;
  };
  int own = 0;
  for (int i = 0; i < kExpertsOfThread; ++i) own += own_of(thread * kExpertsOfThread + i);
  int before = sum_before(shared, own);
  if (thread == THREADS - 1) *a.num_runs = (before + own) >> 16;
  for (int i = 0; i < kExpertsOfThread; ++i) {
    const int expert = thread * kExpertsOfThread + i;
    const TokenMask mask = shared.chosen_by[expert];
    shared.first[expert] = before & 0xffff;
    if (mask == 0) continue;
    a.runs[before >> 16] = {expert, before & 0xffff, __popcll(mask), static_cast<unsigned>(mask)};
    before += own_of(expert);
  }
  __syncthreads();
  for (int id = thread; id < ids; id += THREADS) place_id(shared, a, id, s.top_k);
}

// PER_LANE of a token's experts for each lane; where they are many, registers allow fewer threads.
template <int PER_LANE>
inline constexpr int kRouteThreads = PER_LANE > 8 ? kMaxRouteThreads / 2 : kMaxRouteThreads;

template <int PER_LANE>
__global__ void __launch_bounds__(kRouteThreads<PER_LANE>)
    route_kernel(Arrays a,
                 const float* logits,  // [T, E]
                 Sizes s,
                 bool renormalize) {
  __shared__ RouteShared shared;
  let_next_kernel_start();
  route<PER_LANE, kRouteThreads<PER_LANE>>(shared, a, logits, s, renormalize);
}

inline cudaError_t launch_route(
    const Arrays& a, const Sizes& s, const float* logits, bool renormalize, cudaStream_t stream) {
  auto* kernel = route_kernel<32>;
  const int threads = s.num_experts <= 256 ? kRouteThreads<8> : kRouteThreads<32>;
  if (s.num_experts <= 256) kernel = route_kernel<8>;
  if (s.num_experts <= 128) kernel = route_kernel<4>;
  if (s.num_experts <= 64) kernel = route_kernel<2>;
  if (s.num_experts <= 32) kernel = route_kernel<1>;
  return launch(kernel, dim3(1), dim3(static_cast<unsigned>(threads)), 0, stream, a, logits, s,
                renormalize);
}

}  // namespace moe::DRILL_SIDE::m9
