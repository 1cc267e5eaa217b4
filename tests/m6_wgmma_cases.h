// The cases of m6_wgmma: m2's product on shapes that go around the ring of tiles.
#pragma once

#include "m2_grouped_gemm_cases.h"

namespace moe::m2_cases {

inline constexpr GemmCase kWgmmaCases[] = {
    // tiny: the example of the notes first
    {"tiny", "t4k2", kTokens, 4, 2, 3, 16, 16, 64, Load::kUniform, Data::kExact},
    {"tiny", "t4k2_slots", kSlots, 4, 2, 3, 16, 16, 64, Load::kUniform, Data::kExact},
    {"tiny", "t1k1", kTokens, 1, 1, 1, 8, 8, 64, Load::kUniform, Data::kExact},
    {"tiny", "one_tile", kTokens, 64, 1, 1, 128, 64, 64, Load::kUniform, Data::kExact},
    // edge: one hard thing each
    {"edge", "no_tokens", kTokens, 0, 2, 4, 16, 16, 64, Load::kUniform, Data::kExact},
    {"edge", "top2_tokens", kTokens, 40, 2, 3, 64, 64, 64, Load::kUniform, Data::kExact},
    {"edge", "top2_slots", kSlots, 40, 2, 3, 64, 64, 64, Load::kUniform, Data::kExact},
    {"edge", "n8", kTokens, 9, 2, 4, 8, 64, 64, Load::kUniform, Data::kExact},
    {"edge", "n_tail", kSlots, 21, 2, 2, 136, 64, 64, Load::kUniform, Data::kExact},
    {"edge", "n_two_tiles", kTokens, 20, 1, 1, 256, 72, 64, Load::kUniform, Data::kExact},
    {"edge", "d8", kTokens, 9, 2, 4, 16, 8, 64, Load::kUniform, Data::kExact},
    {"edge", "d_tail", kSlots, 9, 2, 4, 64, 72, 64, Load::kUniform, Data::kNormal},
    // the ring: one turn, as many as it has buffers, then over again
    {"edge", "two_turns", kTokens, 20, 1, 1, 32, 128, 64, Load::kUniform, Data::kExact},
    {"edge", "three_turns", kTokens, 20, 1, 1, 32, 192, 64, Load::kUniform, Data::kExact},
    {"edge", "four_turns", kSlots, 20, 1, 1, 32, 256, 64, Load::kUniform, Data::kExact},
    {"edge", "nine_turns", kTokens, 20, 1, 1, 32, 520, 64, Load::kUniform, Data::kPositive},
    {"edge", "every_second_expert_empty", kTokens, 20, 2, 9, 32, 32, 64, Load::kEvenOnly,
     Data::kExact},
    {"edge", "one_expert_named_by_all", kSlots, 40, 2, 4, 32, 32, 64, Load::kOneExpert,
     Data::kExact},
    {"edge", "last_expert_named_by_all", kTokens, 10, 2, 8, 32, 32, 64, Load::kLastExpert,
     Data::kExact},
    {"edge", "ids_out_of_range", kSlots, 24, 3, 6, 32, 32, 64, Load::kUnrouted, Data::kExact},
    {"edge", "nothing_behind_the_end", kTokens, 18, 2, 8, 32, 32, 64, Load::kEvenOnly, Data::kExact,
     false, true},
    {"edge", "k8", kTokens, 5, 8, 10, 32, 48, 64, Load::kUniform, Data::kNormal},
    {"edge", "block128", kSlots, 80, 2, 2, 72, 40, 128, Load::kUniform, Data::kExact},
    {"edge", "block128_full", kTokens, 128, 1, 1, 128, 128, 128, Load::kUniform, Data::kExact},
    {"edge", "block128_nine_turns", kTokens, 70, 2, 2, 40, 520, 128, Load::kSkewed, Data::kNormal},
    // random: values that are no integers, magnitudes that differ
    {"random", "tokens", kTokens, 50, 2, 4, 128, 128, 64, Load::kUniform, Data::kNormal},
    {"random", "slots", kSlots, 70, 2, 3, 136, 136, 128, Load::kSkewed, Data::kNormal},
    {"random", "spread", kTokens, 30, 4, 6, 64, 96, 64, Load::kUniform, Data::kSpread},
    {"random", "many_experts", kTokens, 9, 2, 64, 64, 64, 64, Load::kUniform, Data::kNormal},
    // refused: rules of the contract
    {"refused", "n12", kTokens, 4, 2, 3, 12, 16, 64, Load::kUniform, Data::kExact, true},
    {"refused", "d20", kTokens, 4, 2, 3, 16, 20, 64, Load::kUniform, Data::kExact, true},
    {"refused", "block32", kTokens, 4, 2, 3, 16, 16, 32, Load::kUniform, Data::kExact, true},
    {"refused", "block48", kTokens, 4, 2, 3, 16, 16, 48, Load::kUniform, Data::kExact, true},
    {"refused", "k_exceeds_e", kTokens, 4, 4, 3, 16, 16, 64, Load::kAscending, Data::kExact, true},
};

}  // namespace moe::m2_cases
