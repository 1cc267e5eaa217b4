// Cases with offsets past 2^31. The arrays are sparse: only the parts that are used exist on our
// side.
#pragma once

#include <drills/m1_align.h>

#include <cstdint>
#include <string>
#include <utility>

#include "judge/buffers.h"
#include "judge/verdict.h"

namespace moe {

struct FarCase {
  const char* name;
  bool rows_are_slots;
  int num_tokens;
  int top_k;
  int num_experts;
  int n;
  int depth;
  bool gpu_only;
  int block_m = 16;
};

inline std::string shape_of(const FarCase& c) {
  return "T=" + std::to_string(c.num_tokens) + " K=" + std::to_string(c.top_k) +
         " E=" + std::to_string(c.num_experts) + " N=" + std::to_string(c.n) +
         " D=" + std::to_string(c.depth) + " block_m=" + std::to_string(c.block_m);
}

// Sizes and tables of a GEMM in which everything but the last token is unrouted; the last flat id
// goes to the last expert, whose weights are all that `w` holds.
template <class Problem>
void set_far_row(const FarCase& c, Problem& p) {
  p.num_tokens = c.num_tokens;
  p.top_k = c.top_k;
  p.num_experts = c.num_experts;
  p.n = c.n;
  p.depth = c.depth;
  p.block_m = c.block_m;
  p.rows_are_slots = c.rows_are_slots;
  p.exact = true;
  p.first_expert = c.num_experts - 1;
  p.topk_ids.assign(static_cast<size_t>(p.num_ids()), -1);
  p.topk_ids.back() = c.num_experts - 1;
  const size_t capacity = align_capacity(p.num_tokens, p.top_k, p.num_experts, p.block_m);
  p.sorted_token_ids.assign(capacity, p.num_ids());
  p.expert_ids.assign(capacity / static_cast<size_t>(c.block_m), -1);
  p.sorted_token_ids[0] = p.num_ids() - 1;
  p.expert_ids[0] = c.num_experts - 1;
  p.num_tokens_post_padded = c.block_m;
}

// The same, seen as one token with one slot: what the oracle can compute.
template <class Problem>
Problem last_row_of(Problem p) {
  p.num_tokens = p.top_k = 1;
  p.topk_ids = {p.num_experts - 1};
  return p;
}

// The last part of an array of `elements` elements.
template <class T>
judge::HostBuffer last_part(judge::HostBuffer buffer, int64_t elements) {
  buffer.sparse_bytes = static_cast<uint64_t>(elements) * sizeof(T);
  buffer.sparse_offset = buffer.sparse_bytes - buffer.payload.size();
  return buffer;
}

// A wrapped offset usually points outside the array: a death is `mistake`.
inline judge::Verdict explain_far_crash(const judge::Mistake& mistake, judge::Verdict verdict) {
  if (verdict.state != judge::State::kCrash) return verdict;
  judge::Verdict named = judge::wrong(mistake, {verdict.sentence});
  named.state = verdict.state;
  named.fault = std::move(verdict.fault);
  return named;
}

}  // namespace moe
