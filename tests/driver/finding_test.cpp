#include "driver/finding.h"

#include <gtest/gtest.h>

#include "driver/compute_sanitizer.h"

namespace moe::driver {
namespace {

constexpr const char* kSource =
    "// BEGIN m2.gather\n"
    "a\n"
    "// END m2.gather\n"
    "b\n"
    "  // BEGIN m2.store (given)\n"
    "c\n";

constexpr const char* kNote = "# m2\n\n## Regions\n\n### gather\n\nText.\n";

Scene scene() {
  Scene scene;
  scene.stage = *find_stage("m2");
  scene.side = "mine";
  scene.again = "drill check m2";
  scene.source = kSource;
  return scene;
}

std::string text_of(const std::vector<Finding>& findings) {
  return findings_text(findings, scene(), kNote, Paint(false));
}

TEST(Finding, AReportHoldsSeveral) {
  const std::vector<Finding> findings = findings_of_fault(
      "race: two threads of a block use byte 8 of dynamic shared memory, and nothing orders them\n"
      "  block (0,0,0) thread (5,0,0) writes\n"
      "  at mine/m2_grouped_gemm.cu:2\n"
      "  block (0,0,0) thread (40,0,0) reads at ../../mine/m2_grouped_gemm.cu:4\n"
      "missing wait: a thread returned\n");
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].kind, "race");
  EXPECT_EQ(findings[0].places,
            (std::vector<std::string>{"mine/m2_grouped_gemm.cu:2", "mine/m2_grouped_gemm.cu:4"}));
  EXPECT_EQ(findings[0].details.front(),
            "block (0,0,0) thread (5,0,0) writes at mine/m2_grouped_gemm.cu:2");
  EXPECT_EQ(findings[1].sentence, "a thread returned");
}

// The places of groups of threads stand in brackets.
TEST(Finding, ADivergenceHasThePlacesOfAllGroups) {
  const std::vector<Finding> findings = findings_of_fault(
      "divergence: threads of one block wait at different __syncthreads()\n"
      "  in block (0,0,0) thread (32,0,0) at mine/m2_grouped_gemm.cu:9\n"
      "  32 threads, first thread (0,0,0): wait at __syncthreads (mine/m2_grouped_gemm.cu:7)\n");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].places.size(), 2u);
}

TEST(Finding, TheSameLinesAreToldOnce) {
  std::vector<Finding> findings;
  Finding one{"race", "byte 8", {}, {"a.cu:1", "a.cu:2"}, {"tiny/a"}, {"order"}};
  add_finding(findings, one);
  one.sentence = "byte 12";
  one.places = {"a.cu:2", "a.cu:1"};
  one.cases = {"tiny/b"};
  add_finding(findings, one);
  one.kind = "missing wait";
  add_finding(findings, one);
  one.places = {"a.cu:2", "a.cu:3"};
  add_finding(findings, one);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].cases, (std::vector<std::string>{"tiny/a", "tiny/b"}));
}

TEST(Finding, AHangIsToldWithTheLineOfTheToolThatKnowsIt) {
  std::vector<Finding> findings;
  add_finding(findings, {"hang", "no progress", {}, {}, {}, {"order"}});
  add_finding(findings, {"hang", "no progress", {"at a.cu:1"}, {"a.cu:1"}, {}, {"memory"}});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].places, std::vector<std::string>{"a.cu:1"});
}

TEST(Finding, RegionsEndAtTheirEnd) {
  EXPECT_EQ(region_at(kSource, 2), "m2.gather");
  EXPECT_EQ(region_at(kSource, 4), "");
  EXPECT_EQ(region_at(kSource, 6), "m2.store");
  EXPECT_EQ(region_at(kSource, 0), "");
}

// What a learner reads, for a finding of each tool.
TEST(Finding, TranscriptOfOrder) {
  std::vector<Finding> findings = findings_of_fault(
      "race: two threads of a block use byte 8288 of dynamic shared memory, and nothing orders "
      "them\n"
      "  block (0,0,0) thread (111,0,0) reads at mine/m2_grouped_gemm.cu:2\n"
      "  block (0,0,0) thread (95,0,0) writes at mine/m2_grouped_gemm.cu:4\n");
  findings[0].cases = {"tiny/t4k2", "edge/n8"};
  findings[0].tools = {"order"};
  EXPECT_EQ(text_of(findings),
            "\n"
            "  1  race: two threads of a block use byte 8288 of dynamic shared memory, and\n"
            "     nothing orders them\n"
            "     block (0,0,0) thread (111,0,0) reads at mine/m2_grouped_gemm.cu:2\n"
            "     block (0,0,0) thread (95,0,0) writes at mine/m2_grouped_gemm.cu:4\n"
            "     code    mine/m2_grouped_gemm.cu:2 region m2.gather\n"
            "     notes   drill notes m2 gather\n"
            "     meaning drill explain RACE\n"
            "     seen    order in tiny/t4k2 and 1 other case\n"
            "     again   drill check m2 --case tiny/t4k2\n");
}

TEST(Finding, TranscriptOfMemory) {
  std::vector<Finding> findings = findings_of_fault(
      "out of bounds: write of 4 bytes at out[row 10 of 8][col 6]\n"
      "  in block (0,0,0) thread (107,0,0)\n"
      "  at mine/m2_grouped_gemm.cu:6\n");
  findings[0].cases = {"tiny/t4k2"};
  findings[0].tools = {"memory"};
  EXPECT_EQ(text_of(findings),
            "\n"
            "  1  out of bounds: write of 4 bytes at out[row 10 of 8][col 6]\n"
            "     in block (0,0,0) thread (107,0,0) at mine/m2_grouped_gemm.cu:6\n"
            "     code    mine/m2_grouped_gemm.cu:6 region m2.store\n"
            "     meaning drill explain OUT-OF-BOUNDS\n"
            "     seen    memory in tiny/t4k2\n"
            "     again   drill check m2 --case tiny/t4k2\n");
}

// ---- compute-sanitizer, in the forms that its manual shows.

TEST(ComputeSanitizer, MemcheckSaysWhatAndWhere) {
  const std::vector<Finding> findings = findings_of_sanitizer(
      "========= COMPUTE-SANITIZER\n"
      "========= Invalid __global__ write of size 4 bytes\n"
      "=========     at void kernel<64>(Problem)+0x160 in /course/mine/m2_grouped_gemm.cu:6\n"
      "=========     by thread (3,0,0) in block (1,0,0)\n"
      "=========     Address 0x7f6510c00001 is out of bounds\n"
      "=========     Saved host backtrace up to driver entry point at kernel launch time\n"
      "=========         Host Frame: main [0x1754] in m2_grouped_gemm.mine\n"
      "=========\n"
      "========= Invalid __global__ write of size 4 bytes\n"
      "=========     at void kernel<64>(Problem)+0x160 in /course/mine/m2_grouped_gemm.cu:6\n"
      "=========     by thread (4,0,0) in block (1,0,0)\n"
      "=========     Address 0x7f6510c00005 is out of bounds\n"
      "========= ERROR SUMMARY: 2 errors\n",
      "/course");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "out of bounds");
  EXPECT_EQ(findings[0].sentence, "write of 4 bytes in global memory");
  EXPECT_EQ(findings[0].places, std::vector<std::string>{"mine/m2_grouped_gemm.cu:6"});
  EXPECT_EQ(
      findings[0].details,
      std::vector<std::string>{"in block (1,0,0) thread (3,0,0) at mine/m2_grouped_gemm.cu:6"});
}

TEST(ComputeSanitizer, AMisalignedAddressIsItsOwnKind) {
  const std::vector<Finding> findings = findings_of_sanitizer(
      "========= Invalid __shared__ read of size 16 bytes\n"
      "=========     at 0x578 in /course/mine/m2_grouped_gemm.cu:120:kernel(Problem)\n"
      "=========     by thread (0,0,0) in block (0,0,0)\n"
      "=========     Address 0x4 is misaligned\n"
      "========= ERROR SUMMARY: 1 error\n",
      "/course");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "misaligned");
  EXPECT_EQ(findings[0].places, std::vector<std::string>{"mine/m2_grouped_gemm.cu:120"});
}

TEST(ComputeSanitizer, RacecheckHasBothLines) {
  const std::vector<Finding> findings = findings_of_sanitizer(
      "========= Error: Race reported between Write access at kernel(int *)+0x90 in "
      "/course/mine/m2_grouped_gemm.cu:13\n"
      "=========     and Read access at kernel(int *)+0xa0 in /course/mine/m2_grouped_gemm.cu:14 "
      "[2048 hazards]\n"
      "=========\n"
      "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)\n",
      "/course");
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].kind, "race");
  EXPECT_EQ(findings[0].details,
            (std::vector<std::string>{"one thread writes at mine/m2_grouped_gemm.cu:13",
                                      "one thread reads at mine/m2_grouped_gemm.cu:14"}));
}

TEST(ComputeSanitizer, InitcheckAndSynccheckSpeakAsTheEmulatorDoes) {
  const std::vector<Finding> findings = findings_of_sanitizer(
      "========= Uninitialized __global__ memory read of size 4 bytes\n"
      "=========     at kernel(int *)+0x70 in /course/mine/m2_grouped_gemm.cu:41\n"
      "=========     by thread (31,0,0) in block (1,0,0)\n"
      "=========     Address 0x7f3c7ec000fc\n"
      "========= Barrier error detected. Divergent thread(s) in block.\n"
      "=========     at kernel(int *)+0xb0 in /course/mine/m2_grouped_gemm.cu:20\n"
      "=========     by thread (32,0,0) in block (0,0,0)\n"
      "========= Barrier error detected. Missing wait.\n"
      "=========     at kernel(int *)+0xb0 in /course/mine/m2_grouped_gemm.cu:22\n"
      "========= ERROR SUMMARY: 3 errors\n",
      "/course");
  ASSERT_EQ(findings.size(), 3u);
  EXPECT_EQ(findings[0].kind, "uninitialised read");
  EXPECT_EQ(findings[1].kind, "divergence");
  EXPECT_EQ(findings[1].sentence, "not all threads of the block come to the same barrier");
  EXPECT_EQ(findings[2].kind, "missing wait");
}

TEST(ComputeSanitizer, ACleanReportFindsNothingAndACutOneIsNoReport) {
  const std::string clean = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n";
  EXPECT_TRUE(findings_of_sanitizer(clean, "/course").empty());
  EXPECT_TRUE(is_complete_report(clean));
  EXPECT_FALSE(is_complete_report("========= COMPUTE-SANITIZER\n"));
}

}  // namespace
}  // namespace moe::driver
