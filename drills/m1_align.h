// m1_align: which tokens go to which expert, and in which order the GEMMs will visit them.
//
// T tokens, E experts, K = top_k experts per token, P = padded rows. A (token, slot) pair has the
// number flat_id = token * top_k + slot; the pad id is T*K, one past the last of them.
//
//   route   logits [T, E]      -> topk_ids [T, K], topk_weights [T, K]
//   align   topk_ids [T, K]    -> sorted_token_ids [capacity], expert_ids [capacity / block_m],
//                                 num_tokens_post_padded [1]
//
// Worked example: T = 4, K = 2, E = 3, block_m = 2, topk_ids = {0,1, 1,2, 0,2, 1,0}.
//   expert 0 is named by flat ids 0, 4, 7; expert 1 by 1, 2, 6; expert 2 by 3, 5. Each count is
//   rounded up to whole blocks (4 + 4 + 2 rows), and capacity is 2 * min(8, (8 + 3*1) / 2) = 10:
//   sorted_token_ids        0 4 | 7 8 | 1 2 | 6 8 | 3 5      (8 is the pad id)
//   expert_ids               0     0     1     1     2
//   num_tokens_post_padded  10
//
// Common rules of all stages: pointers are device pointers, 16-byte aligned, arrays dense and
// row-major; functions launch on `stream` only, never wait, never allocate, and work when captured
// in a CUDA graph and replayed with other data. Device data are not checked. num_tokens = 0 is
// legal.
//
// Cost: align reads T*K ids twice (8*T*K bytes) and writes 4 * capacity * (1 + 1/block_m) bytes;
// route reads 4*T*E bytes and writes 8*T*K. No FLOPs worth counting: both are bound by launches.
//
// Sources: moe_align_block_size in vLLM (csrc/moe) defines the layout; routing as in Switch
// Transformer (arXiv 2101.03961) and Mixtral (arXiv 2401.04088).
#pragma once

#include <cuda_runtime.h>

#include <climits>
#include <cstddef>
#include <cstdint>

#ifndef DRILL_SIDE
#define DRILL_SIDE mine  // the build says mine or solution; editors see the learner's side
#endif

namespace moe {

inline constexpr int kMaxExperts = 1024;
inline constexpr int kMaxTopK = 32;
inline constexpr int kMaxBlockM = 256;

// Entries of sorted_token_ids; capacity / block_m is the length of expert_ids. No routing needs
// more: at most T*K experts are named, and each wastes at most block_m - 1 rows.
inline size_t align_capacity(int num_tokens, int top_k, int num_experts, int block_m) {
  const size_t ids = static_cast<size_t>(num_tokens) * static_cast<size_t>(top_k);
  const size_t rows = ids + static_cast<size_t>(num_experts) * static_cast<size_t>(block_m - 1);
  const size_t blocks = rows / static_cast<size_t>(block_m);
  return static_cast<size_t>(block_m) * (ids < blocks ? ids : blocks);
}

// The size rules that all stages share: nullptr, or the broken rule as a sentence.
inline const char* refuse_sizes(int num_tokens, int num_experts, int top_k) {
  if (num_tokens < 0) return "num_tokens must be at least 0";
  if (num_experts < 1) return "num_experts must be at least 1";
  if (top_k < 1) return "top_k must be at least 1";
  if (top_k > num_experts) return "top_k must not exceed num_experts";
  if (static_cast<int64_t>(num_tokens) * top_k > INT_MAX)
    return "num_tokens * top_k must fit in int";
  return nullptr;
}

inline const char* refuse_blocks(int num_tokens, int top_k, int num_experts, int block_m) {
  const int64_t rows =
      static_cast<int64_t>(num_tokens) * top_k + static_cast<int64_t>(num_experts) * (block_m - 1);
  if (rows > INT_MAX) return "T*K + E*(block_m - 1) must fit in int";
  return nullptr;
}

}  // namespace moe

namespace moe::DRILL_SIDE {

// Chooses top_k experts for each token.
//   slots     in descending logit; logits are compared, not probabilities. -0 equals +0; equal
//   logits:
//             the lower id first; the ids of a row are distinct. +-inf count as +-FLT_MAX. NaN
//             ranks below everything (among NaNs the lower id first) and weighs 0.
//   weights   softmax over all non-NaN logits of the row; with `renormalize` the K weights are then
//             divided by their sum, if that is > 0. A row of NaN only: ids 0..K-1, weights 0.
// Returns cudaErrorInvalidValue, before any launch, where refuse_route has a sentence to say.
cudaError_t route(int32_t* topk_ids,    // [T, K]
                  float* topk_weights,  // [T, K]
                  const float* logits,  // [T, E]
                  int num_tokens,
                  int num_experts,
                  int top_k,
                  bool renormalize,
                  cudaStream_t stream);

// Bytes of scratch memory that align wants; yours to choose, 0 is allowed. Called on the host.
size_t align_workspace_bytes(int num_tokens, int top_k, int num_experts, int block_m);

// Sorts flat ids by expert, each expert's rows padded to whole blocks of block_m.
//   experts ascending; ceil(c / block_m) blocks for an expert that c flat ids name, none for c = 0;
//   ids of one expert in any order; an id outside [0, E) is "not routed" and left out; an expert
//   that a token names twice is listed twice. All capacity entries are written: the pad id T*K in
//   the free rows and behind the end, -1 in expert_ids behind the end.
// The workspace is dirty before and after; 256-byte aligned, null when 0 bytes.
cudaError_t align(int32_t* sorted_token_ids,        // [capacity]
                  int32_t* expert_ids,              // [capacity / block_m]
                  int32_t* num_tokens_post_padded,  // [1]
                  const int32_t* topk_ids,          // [T, K]
                  int num_tokens,
                  int top_k,
                  int num_experts,
                  int block_m,
                  void* workspace,
                  size_t workspace_bytes,
                  cudaStream_t stream);

// Given: nullptr, or the rule that the arguments break.
inline const char* refuse_route(const int32_t* /*topk_ids*/,
                                const float* /*topk_weights*/,
                                const float* /*logits*/,
                                int num_tokens,
                                int num_experts,
                                int top_k,
                                bool /*renormalize*/,
                                cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(num_tokens, num_experts, top_k)) return rule;
  if (num_experts > kMaxExperts) return "num_experts must not exceed 1024";
  if (top_k > kMaxTopK) return "top_k must not exceed 32";
  return nullptr;
}

inline const char* refuse_align(const int32_t* /*sorted_token_ids*/,
                                const int32_t* /*expert_ids*/,
                                const int32_t* /*num_tokens_post_padded*/,
                                const int32_t* /*topk_ids*/,
                                int num_tokens,
                                int top_k,
                                int num_experts,
                                int block_m,
                                const void* workspace,
                                size_t workspace_bytes,
                                cudaStream_t /*stream*/) {
  if (const char* rule = refuse_sizes(num_tokens, num_experts, top_k)) return rule;
  if (num_experts > kMaxExperts) return "num_experts must not exceed 1024";
  if (top_k > kMaxTopK) return "top_k must not exceed 32";
  if (block_m < 1 || block_m > kMaxBlockM) return "block_m must be 1 to 256";
  if (const char* rule = refuse_blocks(num_tokens, top_k, num_experts, block_m)) return rule;
  if (workspace_bytes < align_workspace_bytes(num_tokens, top_k, num_experts, block_m)) {
    return "workspace_bytes must be at least align_workspace_bytes(...)";
  }
  if (reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
    return "workspace must be 256-byte aligned";
  return nullptr;
}

}  // namespace moe::DRILL_SIDE
