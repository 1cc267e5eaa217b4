# add_stage(m3_weighted_epilogue "title" UPSTREAM m1_align m2_grouped_gemm): notes a stage and the earlier ones
# whose functions it calls (drills/upstream.h). The subdirectories make its targets:
#   host   mN_topic_test                        tests/CMakeLists.txt
#   cpu, cuda   mN_topic.mine, .solution, .skeleton    tests/runner/CMakeLists.txt
# and the command `drill` gets the list as build/host/generated/stages.h.
set(DRILL_STAGES "")
set(DRILL_STAGE_ENTRIES "")

macro(add_stage stem title)
  list(APPEND DRILL_STAGES ${stem})
  cmake_parse_arguments(STAGE "" "" UPSTREAM ${ARGN})
  set(DRILL_UPSTREAM_OF_${stem} ${STAGE_UPSTREAM})
  string(REGEX MATCH "^m[0-9]+" stage_id ${stem})
  string(APPEND DRILL_STAGE_ENTRIES "    {\"${stage_id}\", \"${stem}\", \"${title}\"},\n")
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/stages.h" CONTENT
"// Made by CMake from the add_stage lines.
#pragma once

namespace moe {

struct Stage {
  const char* id;     // m1
  const char* stem;   // m1_align
  const char* title;  // routing and align
};

inline constexpr Stage kStages[] = {
@DRILL_STAGE_ENTRIES@};

}  // namespace moe
" @ONLY)
endmacro()
