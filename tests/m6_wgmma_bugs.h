// Bug models of m6_wgmma: m2's, which say the same here, and those of tiles, swizzles and
// descriptors. Mistakes with barriers, fences and waits have no value of their own: the emulator
// names them.
#pragma once

#include <vector>

#include "judge/models.h"
#include "m2_grouped_gemm_bugs.h"

namespace moe::bugs {

const std::vector<GemmModel>& wgmma_models();

// m2's mistake, where m6 has it: the region and the section of m6's note.
judge::Mistake in_m6(const judge::Mistake& of_m2);

extern const judge::Mistake kWgmmaUninitialised;  // NaN that no input has

}  // namespace moe::bugs
