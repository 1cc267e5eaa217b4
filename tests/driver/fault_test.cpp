#include "driver/fault.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

TEST(Fault, PicksTheFrameInAStagesFile) {
  EXPECT_EQ(pick_frame("/a b/emulator/include/cuda_bf16.h:12\n"
                       "/a b/mine/m2_grouped_gemm.cu:61 (discriminator 2)\n"
                       "/a b/tests/runner/main.cpp:5\n",
                       "/a b"),
            "mine/m2_grouped_gemm.cu:61");
  EXPECT_EQ(pick_frame("solutions/m1_align.cu:9\n", "/a b"), "solutions/m1_align.cu:9");
  EXPECT_EQ(pick_frame("./mine/m1_align.cu:9\n", "/a b"), "mine/m1_align.cu:9");
}

TEST(Fault, ElseTheInnermostFrame) {
  EXPECT_EQ(pick_frame("/a/emulator/src/warp.cpp:12\n/a/emulator/src/block.cpp:7\n", "/a"),
            "emulator/src/warp.cpp:12");
  EXPECT_EQ(pick_frame("??:0\n", "/a"), "");
  EXPECT_EQ(pick_frame("??:?\n/a/x.cpp:?\n", "/a"), "");
  EXPECT_EQ(pick_frame("", "/a"), "");
}

// This very program has debug information, or at least a symbol table to fail on.
TEST(Fault, ReplacesOnlyCounterLines) {
  EXPECT_EQ(resolve_fault("deadlock: x\n  pc 0x1\n  in block (0,0,0)\n", "/no/such/runner", "/a"),
            "deadlock: x\n  in block (0,0,0)\n");
  EXPECT_EQ(resolve_fault("speaks of pc 0x1\n", "/no/such/runner", "/a"), "speaks of pc 0x1\n");
}

}  // namespace
}  // namespace moe::driver
