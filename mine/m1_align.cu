// m1_align: softmax top-k routing, and the table that sorts (token, slot) pairs by expert.
//
// route: one warp per token. Each lane holds every 32nd logit of the row in registers, as an
// unsigned key that sorts like the logit; the warp finds the largest key K times. align: three
// small kernels, because the sum over all ids must be known before the first id can be placed:
// count ids per expert, scan the padded counts, scatter the ids. Nothing returns to the host: the
// GEMMs read num_tokens_post_padded on the device.
//
// The contract is drills/m1_align.h; the note is content/m1_align.md.
#include <drills/m1_align.h>

#include <cfloat>

#include <drills/launch.h>

namespace moe::DRILL_SIDE {
namespace {

constexpr int kWarpSize = 32;
constexpr unsigned kAllLanes = 0xffffffffu;
constexpr int kRouteThreads = 128;  // 4 tokens a block
constexpr int kAlignThreads = 256;
constexpr int kMaxAlignBlocks = 264;  // two per multiprocessor of an H200; more only add atomics

constexpr uint32_t kTaken = 0;   // below every logit
constexpr uint32_t kNanKey = 1;  // below every number, above what is taken

// An unsigned number that orders like the logit: NaN lowest, then -FLT_MAX .. FLT_MAX. Infinities
// are clamped and -0 becomes +0, as the contract says. Keys of numbers are at least 0x00800000.
__device__ uint32_t key_of(float logit) {
  if (logit != logit) return kNanKey;
  const float number = fminf(fmaxf(logit, -FLT_MAX), FLT_MAX) + 0.0f;
  const uint32_t bits = __float_as_uint(number);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
}

__device__ float logit_of(uint32_t key) {
  return __uint_as_float((key >> 31) != 0 ? key & 0x7fffffffu : ~key);
}

__device__ float warp_sum(float value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, distance);
  }
  return value;
}

// PER_LANE * 32 experts at most; lane l holds experts l, l + 32, l + 64, ...
template <int PER_LANE>
__global__ void __launch_bounds__(kRouteThreads) route_kernel(int32_t* topk_ids,    // [T, K]
                                                              float* topk_weights,  // [T, K]
                                                              const float* logits,  // [T, E]
                                                              int num_tokens,
                                                              int num_experts,
                                                              int top_k,
                                                              bool renormalize) {
  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  const int token = static_cast<int>((blockIdx.x * blockDim.x + threadIdx.x) / kWarpSize);
  if (token >= num_tokens) return;  // a whole warp leaves or stays: the collectives below are safe

  const float* row = logits + static_cast<int64_t>(token) * num_experts;
  uint32_t keys[PER_LANE];
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    const int expert = lane + i * kWarpSize;
    keys[i] = expert < num_experts ? key_of(row[expert]) : kTaken;
  }

  // Softmax needs the largest logit (so that expf cannot overflow) and the sum over the row.
  uint32_t largest = kTaken;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) largest = max(largest, keys[i]);
  largest = __reduce_max_sync(kAllLanes, largest);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < PER_LANE; ++i) {
    if (keys[i] > kNanKey) sum += expf(logit_of(keys[i]) - logit_of(largest));
  }
  sum = warp_sum(sum);

  // Lane `slot` keeps what is chosen for that slot; K <= 32 makes that one register each.
  int my_id = 0;
  uint32_t my_key = kTaken;
  for (int slot = 0; slot < top_k; ++slot) {
    // The expert with the largest key, and of equal keys the lowest id; then strike it out
    // (kTaken), so that the next slot finds the next one. __reduce_max_sync and __reduce_min_sync
    // give all 32 lanes the extreme of their values. Lane `slot` keeps both: my_id, my_key.
    // BEGIN m1.topk
    // about 18 lines
    DRILL_TODO("m1.topk");
    my_id = slot;
    // END m1.topk
  }

  // The softmax weight of my_key; a NaN weighs 0. `renormalize` divides the K weights of the row by
  // their sum, unless that is 0 (lanes at or behind top_k must add nothing to it).
  // BEGIN m1.weights
  // about 6 lines
  DRILL_TODO("m1.weights");
  const float weight = 0.0f;
  // END m1.weights

  if (lane < top_k) {
    const int64_t position = static_cast<int64_t>(token) * top_k + lane;
    topk_ids[position] = my_id;
    topk_weights[position] = weight;
  }
}

// counts[e] += how many flat ids name expert e (counts are 0 before). Also writes the pad id to all
// of sorted_token_ids, since the scatter will fill only the rows that have an id.
__global__ void __launch_bounds__(kAlignThreads)
    count_kernel(int32_t* counts,            // [E]
                 int32_t* sorted_token_ids,  // [capacity]
                 const int32_t* topk_ids,    // [T*K]
                 int num_ids,
                 int capacity,
                 int num_experts) {
  __shared__ int32_t block_counts[kMaxExperts];  // (E)
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + thread;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;

  for (int64_t i = first; i < capacity; i += stride) sorted_token_ids[i] = num_ids;

  // Count in shared memory first: a hot expert would otherwise serialise the atomics of all blocks
  // on one address. Shared memory starts with garbage. Ids outside [0, E) are not routed. `first`
  // and `stride` walk over all ids of the grid; at the end the block adds what it has to `counts`.
  // BEGIN m1.count
  // about 10 lines
  DRILL_TODO("m1.count");
  // END m1.count
}

// One block, one thread per expert (blockDim.x is E rounded up to whole warps). offsets[e] becomes
// the first row of expert e, offsets[E] the number of all rows, a second copy cursors[e] is what
// the scatter counts up.
__global__ void __launch_bounds__(kMaxExperts) scan_kernel(int32_t* offsets,  // [E + 1]
                                                           int32_t* cursors,  // [E]
                                                           int32_t* num_tokens_post_padded,  // [1]
                                                           const int32_t* counts,            // [E]
                                                           int num_experts,
                                                           int block_m) {
  __shared__ int32_t warp_totals[kMaxExperts / kWarpSize];
  const int expert = static_cast<int>(threadIdx.x);
  const int lane = expert % kWarpSize;
  const int warp = expert / kWarpSize;
  const int count = expert < num_experts ? counts[expert] : 0;

  // padded: count rounded up to whole blocks. end: the sum of `padded` over experts 0 .. this one.
  // Within a warp by __shfl_up_sync; across warps through warp_totals and a barrier.
  // BEGIN m1.scan
  // about 9 lines
  DRILL_TODO("m1.scan");
  const int padded = 0;
  const int end = 0;
  if (lane == 0) warp_totals[warp] = count;
  // END m1.scan

  if (expert < num_experts) {
    offsets[expert] = end - padded;
    cursors[expert] = end - padded;
  }
  if (expert == num_experts - 1) {
    offsets[num_experts] = end;
    num_tokens_post_padded[0] = end;
  }
}

// Which expert owns row `row`: the last one that starts at or before it (experts without rows share
// their start with the next one).
__device__ int expert_of_row(const int32_t* offsets, int num_experts, int row) {
  int low = 0;
  int high = num_experts;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (offsets[middle] <= row) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Puts every flat id into a free row of its expert, and labels the blocks.
__global__ void __launch_bounds__(kAlignThreads)
    scatter_kernel(int32_t* sorted_token_ids,  // [capacity]
                   int32_t* expert_ids,        // [capacity/block_m]
                   int32_t* cursors,           // [E]
                   const int32_t* offsets,     // [E + 1]
                   const int32_t* topk_ids,    // [T*K]
                   int num_ids,
                   int num_blocks,
                   int num_experts,
                   int block_m) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const int end = offsets[num_experts];

  for (int64_t b = first; b < num_blocks; b += stride) {
    const int row = static_cast<int>(b) * block_m;
    expert_ids[b] = row < end ? expert_of_row(offsets, num_experts, row) : -1;
  }

  const int lane = static_cast<int>(threadIdx.x) % kWarpSize;
  // The bound is rounded up so that whole warps go round together: the collective below wants all
  // lanes.
  const int64_t bound = (static_cast<int64_t>(num_ids) + kWarpSize - 1) / kWarpSize * kWarpSize;
  for (int64_t flat_id = first; flat_id < bound; flat_id += stride) {
    int32_t expert = flat_id < num_ids ? topk_ids[flat_id] : -1;
    if (expert < 0 || expert >= num_experts) expert = -1;

    // Store flat_id in the next free row of its expert: cursors[expert] counts up. One atomicAdd
    // per lane is right; one per group of lanes with the same expert is fast: __match_any_sync
    // tells a lane which lanes hold the same value, the lowest of them adds for all, __shfl_sync
    // hands the result on.
    // BEGIN m1.scatter
    // about 7 lines
    DRILL_TODO("m1.scatter");
    // END m1.scatter
  }
}

}  // namespace

cudaError_t route(int32_t* topk_ids,
                  float* topk_weights,
                  const float* logits,
                  int num_tokens,
                  int num_experts,
                  int top_k,
                  bool renormalize,
                  cudaStream_t stream) {
  if (refuse_route(topk_ids, topk_weights, logits, num_tokens, num_experts, top_k, renormalize,
                   stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) return cudaSuccess;
  const int tokens_per_block = kRouteThreads / kWarpSize;
  const dim3 grid((num_tokens + tokens_per_block - 1) / tokens_per_block);
  // Two variants: few registers for the common E <= 256, 32 keys a lane for the rest.
  auto* kernel = num_experts <= 256 ? route_kernel<8> : route_kernel<32>;
  return launch(kernel, grid, dim3(kRouteThreads), 0, stream, topk_ids, topk_weights, logits,
                num_tokens, num_experts, top_k, renormalize);
}

size_t align_workspace_bytes(int /*num_tokens*/, int /*top_k*/, int num_experts, int /*block_m*/) {
  // counts [E], cursors [E], offsets [E + 1]
  return (3 * static_cast<size_t>(num_experts) + 1) * sizeof(int32_t);
}

cudaError_t align(int32_t* sorted_token_ids,
                  int32_t* expert_ids,
                  int32_t* num_tokens_post_padded,
                  const int32_t* topk_ids,
                  int num_tokens,
                  int top_k,
                  int num_experts,
                  int block_m,
                  void* workspace,
                  size_t workspace_bytes,
                  cudaStream_t stream) {
  if (refuse_align(sorted_token_ids, expert_ids, num_tokens_post_padded, topk_ids, num_tokens,
                   top_k, num_experts, block_m, workspace, workspace_bytes, stream) != nullptr) {
    return cudaErrorInvalidValue;
  }
  if (num_tokens == 0) {
    return cudaMemsetAsync(num_tokens_post_padded, 0, sizeof(int32_t), stream);
  }
  auto* counts = static_cast<int32_t*>(workspace);
  int32_t* cursors = counts + num_experts;
  int32_t* offsets = cursors + num_experts;
  const int num_ids = num_tokens * top_k;
  const int capacity = static_cast<int>(align_capacity(num_tokens, top_k, num_experts, block_m));
  const int wanted_blocks = (capacity + kAlignThreads - 1) / kAlignThreads;
  const dim3 grid(wanted_blocks < kMaxAlignBlocks ? wanted_blocks : kMaxAlignBlocks);
  const dim3 scan_block((num_experts + kWarpSize - 1) / kWarpSize * kWarpSize);

  // The workspace holds whatever the last call left there.
  cudaError_t status =
      cudaMemsetAsync(counts, 0, static_cast<size_t>(num_experts) * sizeof(int32_t), stream);
  if (status != cudaSuccess) return status;
  status = launch(count_kernel, grid, dim3(kAlignThreads), 0, stream, counts, sorted_token_ids,
                  topk_ids, num_ids, capacity, num_experts);
  if (status != cudaSuccess) return status;
  status = launch(scan_kernel, dim3(1), scan_block, 0, stream, offsets, cursors,
                  num_tokens_post_padded, counts, num_experts, block_m);
  if (status != cudaSuccess) return status;
  return launch(scatter_kernel, grid, dim3(kAlignThreads), 0, stream, sorted_token_ids, expert_ids,
                cursors, offsets, topk_ids, num_ids, capacity / block_m, num_experts, block_m);
}

}  // namespace moe::DRILL_SIDE
