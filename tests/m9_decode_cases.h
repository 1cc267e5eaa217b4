// The cases of m9_decode besides those that every layer has.
#pragma once

#include "layer_cases.h"

namespace moe::m9_cases {

inline constexpr LayerData kNormal = LayerData::kNormal;
inline constexpr LayerData kExact = LayerData::kExact;
inline constexpr LayerData kHot = LayerData::kHotExpert;

// clang-format off: one case a line
inline constexpr LayerCase kCases[] = {
    //                       T   E  K   H   I
    // one expert gets all tokens: multiply-adds up to 4, then tiles of 8, rounded up to 1, 2, 4, 8
    {"rows", "tokens_1", 1, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_2", 2, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_3", 3, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_4", 4, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_5", 5, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_8", 8, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_9", 9, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_16", 16, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_17", 17, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_31", 31, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_32", 32, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_33", 33, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_63", 63, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_64", 64, 1, 1, 64, 32, false, kExact},
    {"rows", "tokens_64_of_many", 64, 40, 2, 32, 24, true, kNormal},
    {"rows", "tokens_64_hot", 64, 12, 3, 40, 24, true, kHot},
    {"rows", "tokens_4_hot", 4, 8, 3, 72, 40, true, kHot},
    {"rows", "tokens_3_of_many", 3, 40, 8, 72, 40, true, kNormal},
    // columns: of x, h and out; steps of 256 for up to 4 tokens, of 128 above, in parts of 32
    {"tiles", "gemv_8", 1, 4, 2, 8, 8, true, kNormal},
    {"tiles", "gemv_256", 2, 4, 2, 256, 256, true, kExact},
    {"tiles", "gemv_264_248", 1, 4, 2, 264, 248, true, kNormal},
    {"tiles", "gemv_520_40", 4, 3, 2, 520, 40, true, kNormal},
    {"tiles", "gemv_40_776", 4, 3, 2, 40, 776, true, kNormal},
    {"tiles", "gemv_1032_24", 3, 3, 2, 1032, 24, true, kNormal},
    {"tiles", "gemv_more_steps_than_warps", 2, 2, 1, 16, 2312, false, kNormal},
    {"tiles", "gemv_steps_of_eight_runs", 1, 20, 8, 16, 520, true, kNormal},
    {"tiles", "pieces_8", 5, 4, 2, 8, 8, true, kNormal},
    {"tiles", "pieces_24_40", 7, 4, 2, 24, 40, true, kExact},
    {"tiles", "pieces_120_136", 6, 4, 2, 120, 136, true, kNormal},
    {"tiles", "pieces_128", 6, 4, 2, 128, 128, true, kNormal},
    {"tiles", "pieces_136_248", 6, 4, 2, 136, 248, true, kNormal},
    {"tiles", "pieces_256", 7, 4, 2, 256, 256, true, kNormal},
    {"tiles", "pieces_248_120", 9, 4, 2, 248, 120, true, kNormal},
    {"tiles", "pieces_264", 11, 3, 2, 264, 264, true, kNormal},
    {"tiles", "pieces_520_136", 6, 2, 1, 520, 136, false, kNormal},
    // the same with 2, 4 and 8 tiles of tokens, whose values are asked for 2 parts ahead or not
    {"tiles", "tiles_1_of_2", 16, 2, 1, 136, 264, false, kNormal},
    {"tiles", "tiles_2", 16, 1, 1, 264, 136, false, kNormal},
    {"tiles", "tiles_4", 17, 1, 1, 136, 264, false, kNormal},
    {"tiles", "tiles_8", 33, 1, 1, 264, 136, false, kNormal},
    {"tiles", "tiles_8_full", 64, 1, 1, 136, 168, false, kNormal},
    // GEMM2 in 1, 2, 3 and 8 splits, whose last step has 8 columns
    {"tiles", "one_split", 6, 3, 2, 8, 1016, true, kNormal},
    {"tiles", "splits_2", 6, 3, 2, 8, 1032, true, kNormal},
    {"tiles", "splits_3", 17, 2, 1, 24, 1544, false, kExact},
    {"tiles", "splits_8", 5, 1, 1, 8, 4120, false, kNormal},
    {"tiles", "empty_experts", 6, 100, 2, 64, 64, true, kNormal},
    {"tiles", "e512", 7, 512, 8, 8, 8, true, kNormal},
    {"tiles", "e1024", 3, 1024, 2, 8, 8, true, kNormal},
    {"tiles", "k32", 5, 40, 32, 16, 8, true, kNormal},
    {"tiles", "k32_gemv", 2, 33, 32, 16, 8, true, kNormal},
    // the same call twice, into two outputs
    {"random", "twice_gemv", 4, 6, 3, 136, 72, true, kHot, false, 2},
    {"random", "twice_splits", 9, 3, 2, 16, 1032, true, kNormal, false, 2},
    {"random", "twice_many", 60, 24, 4, 40, 72, true, kHot, false, 2},
    {"refused", "tokens_65", 65, 3, 2, 16, 16, true, kNormal, true},
};
// clang-format on

}  // namespace moe::m9_cases
