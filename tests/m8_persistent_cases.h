// The cases of m8_persistent besides those that every layer has.
#pragma once

#include "layer_cases.h"

namespace moe::m8_cases {

inline constexpr LayerData kNormal = LayerData::kNormal;
inline constexpr LayerData kExact = LayerData::kExact;
inline constexpr LayerData kHot = LayerData::kHotExpert;

// clang-format off: one case a line
inline constexpr LayerCase kCases[] = {
    //                       T   E  K   H   I
    // rows of one expert: units of 16, half tiles of 64, whole ones of 128, long ones of 144 (up to
    // 144 rows one, up to 272 one, up to 288 two), both GEMMs' tiles
    {"rows", "rows_15", 15, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_16", 16, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_17", 17, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_48", 48, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_49", 49, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_63", 63, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_64", 64, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_65", 65, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_80", 80, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_112", 112, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_113", 113, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_127", 127, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_128", 128, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_129", 129, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_144", 144, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_145", 145, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_177", 177, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_193", 193, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_240", 240, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_256", 256, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_257", 257, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_272", 272, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_273", 273, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_288", 288, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_289", 289, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_300", 300, 1, 1, 64, 32, false, kExact},
    {"rows", "rows_540", 540, 1, 1, 64, 32, false, kExact},
    // tiles: 1 to 9 of each GEMM for the emulator's four blocks, and columns that fill no tile
    {"tiles", "tiles_3", 9, 1, 1, 384, 384, false, kNormal},
    {"tiles", "tiles_4", 9, 1, 1, 512, 512, false, kExact},
    {"tiles", "tiles_5", 9, 1, 1, 520, 520, false, kExact},
    {"tiles", "tiles_8", 20, 8, 8, 72, 136, true, kExact},
    {"tiles", "tiles_9_and_18", 20, 9, 9, 136, 72, true, kNormal},
    {"tiles", "tiles_13", 26, 13, 4, 64, 64, true, kNormal},
    // long tiles and others in one block's hands, one behind the other, and columns of h that fill
    // a quarter of a tile
    {"tiles", "long_and_short", 420, 3, 1, 72, 160, false, kNormal},
    // one hot expert: a long tile and half ones, GEMM2 cuts it into three tiles of 48
    {"tiles", "hot_expert", 130, 8, 2, 72, 72, true, kHot},
    {"tiles", "hot_expert_of_many", 100, 40, 2, 64, 40, true, kHot},
    {"tiles", "empty_experts", 6, 100, 2, 64, 64, true, kNormal},
    {"tiles", "e512", 7, 512, 8, 8, 8, true, kNormal},
    {"tiles", "e1024", 3, 1024, 2, 8, 8, true, kNormal},
    {"tiles", "k8_of_8", 33, 8, 8, 64, 64, false, kNormal},
    // 192 rows of an expert on average, or more: clusters of two blocks, of which the emulator has
    // two. Token tiles of an expert one, two, three, with half and long ones; columns of h and of y
    // fill one, two or three tiles
    {"tiles", "cluster_3_tiles", 400, 1, 1, 136, 264, false, kNormal},
    {"tiles", "cluster_4_and_a_half", 560, 1, 1, 264, 136, false, kExact},
    {"tiles", "cluster_3_experts", 640, 3, 1, 72, 136, false, kNormal},
    {"tiles", "cluster_exact_k2", 330, 3, 2, 40, 264, false, kExact},
    {"tiles", "cluster_empty_experts", 390, 2, 1, 64, 40, false, kHot},
    // one has more than twice its share: place puts long and short experts in turn
    {"tiles", "cluster_hot_expert", 500, 5, 2, 72, 136, true, kHot},
    // turns: the ring has four stages, or six to eight; reports are due in turn 8
    {"ring", "turns_1", 80, 2, 1, 64, 64, false, kExact},
    {"ring", "turns_2_and_3", 80, 2, 1, 128, 192, false, kNormal},
    {"ring", "turns_4_and_5", 80, 2, 1, 256, 320, false, kNormal},
    {"ring", "turns_9_and_8", 20, 3, 2, 576, 512, true, kNormal},
    {"ring", "turns_11_and_10", 150, 2, 1, 704, 640, false, kNormal},
    {"ring", "turns_7_and_6", 90, 2, 2, 448, 384, true, kNormal},
    // reports are sent on in turn 14
    {"ring", "turns_17_and_1", 20, 3, 2, 1032, 64, true, kNormal},
    {"ring", "cluster_turns_17_and_1", 300, 1, 1, 1032, 64, false, kNormal},
    {"ring", "cluster_turns_3_and_10", 200, 1, 1, 192, 640, false, kNormal},
    // the same call twice, into two outputs
    {"random", "twice_clusters", 400, 2, 1, 136, 72, false, kNormal, false, 2},
    {"random", "twice_hot", 70, 6, 2, 72, 136, true, kHot, false, 2},
    {"random", "twice_many_blocks", 170, 12, 3, 40, 72, true, kNormal, false, 2},
    {"random", "many_tokens", 2100, 4, 1, 8, 8, false, kNormal},
};
// clang-format on

}  // namespace moe::m8_cases
