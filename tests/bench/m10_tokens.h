// m10_tokens.h: tokens of a timed layer on 8-bit codes, judged as m10's tests judge theirs: with
// the codes of h that are open (tests/m10_fp8_hopper_judge.h).
#pragma once

#include <cstdint>
#include <vector>

#include "../judge/child.h"
#include "../judge/compare.h"
#include "../judge/verdict.h"
#include "../m10_fp8_hopper_oracle.h"
#include "shapes.h"

namespace moe::bench {

inline constexpr uint64_t kSeedW13Scales = 21, kSeedW2Scales = 22;

// A token of the generated layer as a layer of its own: its experts alone, in the order of its
// slots. All experts of a layer don't fit into the memory of a host.
oracle::Fp8LayerProblem problem_of_token(const Shape& shape,
                                         const std::vector<int32_t>& topk_ids,
                                         int64_t token);

// Outputs of tokens in bf16, one for each reference, and how they differ.
judge::Difference difference_of_tokens(const std::vector<oracle::Fp8LayerReference>& references,
                                       const std::vector<judge::Bytes>& samples);
judge::Verdict judge_tokens(const std::vector<oracle::Fp8LayerReference>& references,
                            const std::vector<judge::Bytes>& samples);

}  // namespace moe::bench
