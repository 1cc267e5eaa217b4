# add_stage(m3_weighted_epilogue "title" UPSTREAM m1_align m2_grouped_gemm): notes a stage and the earlier ones
# whose functions it calls (drills/upstream.h).
#
# REQUIRES_CAPABILITY 9.0: its instructions exist on GPUs of exactly this compute capability. What follows:
#   - its kernel file is compiled for sm_90a alone, whatever CMAKE_CUDA_ARCHITECTURES says, so that it builds
#     beside the other stages for any GPU; the emulator compiles it as ever and reports capability 9.0
#   - on another GPU `drill`, the test program and the bench SKIP (exit code 77) before they run anything of it,
#     and say what would run instead (driver/capability.h)
#   - its functions refuse such a GPU themselves: refuse_X calls refuse_unless_capability_9_0 (drills/capability.h)
# Without it a stage runs on 8.0 and newer. EMULATOR_CAPABILITY=8.9 makes the emulator another GPU, to try this.
#
# The subdirectories make its targets:
#   host   mN_topic_test                        tests/CMakeLists.txt
#   cpu, cuda   mN_topic.mine, .solution, .skeleton    tests/runner/CMakeLists.txt
# and the command `drill` gets the list as build/host/generated/stages.h.
set(DRILL_STAGES "")
set(DRILL_STAGE_ENTRIES "")

macro(add_stage stem title)
  list(APPEND DRILL_STAGES ${stem})
  cmake_parse_arguments(STAGE "" "REQUIRES_CAPABILITY" "UPSTREAM" ${ARGN})
  set(DRILL_UPSTREAM_OF_${stem} ${STAGE_UPSTREAM})
  set(DRILL_CAPABILITY_OF_${stem} ${STAGE_REQUIRES_CAPABILITY})
  string(REGEX MATCH "^m[0-9]+" stage_id ${stem})
  string(APPEND DRILL_STAGE_ENTRIES "    {\"${stage_id}\", \"${stem}\", \"${title}\", \"${STAGE_REQUIRES_CAPABILITY}\"},\n")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/stages.h" CONTENT
"// Made by CMake from the add_stage lines.
#pragma once

namespace moe {

struct Stage {
  const char* id;          // m1
  const char* stem;        // m1_align
  const char* title;       // routing and align
  const char* capability;  // 9.0: runs on these GPUs only; empty: on 8.0 and newer
};

inline constexpr Stage kStages[] = {
@DRILL_STAGE_ENTRIES@};

}  // namespace moe
" @ONLY)
endmacro()
