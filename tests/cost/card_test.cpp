// From counts to a card: names, sums, limits.
#include "driver/cost/card.h"

#include <string>

#include <gtest/gtest.h>

#include "driver/course.h"

namespace moe::driver {
namespace {

constexpr const char* kCounts =
    R"({"version":1,"kernels":[{"function":4096,"grid":[2,1,1],"threads":128,"smem_bytes":64,)"
    R"("blocks":2,"blocks_at_work":1,"barriers":3,"mma":4,"wgmma":0,"flops":16384,)"
    R"("dram_read":640,"dram_written":64,"lines":[)"
    R"({"via":"load or store","space":"global","writes":false,"pc":4100,"requests":2,"bytes":256,)"
    R"("units":64,"least":8},)"
    R"({"via":"load or store","space":"global","writes":false,"pc":4104,"requests":1,"bytes":128,)"
    R"("units":4,"least":4},)"
    R"({"via":"ldmatrix","space":"shared","writes":false,"file":"../../mine/m2.cu","line":9,)"
    R"("requests":5,"bytes":2560,"units":40,"least":20}]}]})";

constexpr const char* kAddr2line =
    "0x0000000000001000\n"
    "void moe::mine::(anonymous namespace)::gemm<16, 4>(moe::Problem)\n"
    "/course/mine/m2.cu:20\n"
    "0x0000000000001004\n"
    "load\n"
    "/course/build/cpu-traced/../../drills/ptx.h:7 (discriminator 2)\n"
    "moe::mine::(anonymous namespace)::gemm<16, 4>(moe::Problem)\n"
    "/course/build/cpu-traced/../../mine/m2.cu:31\n"
    "0x0000000000001008\n"
    "moe::mine::(anonymous namespace)::gemm<16, 4>(moe::Problem)\n"
    "/course/mine/m2.cu:31\n";

CostCard example() {
  return parse_cost(kCounts, parse_symbols(kAddr2line, "/course"));
}

constexpr CostCase kLeast{"m2", "a/b", 12288, 320, 32, 0, false};

TEST(CardTest, ProgramCountersOfOneLineAreOneLine) {
  const CostCard card = example();
  ASSERT_EQ(card.lines.size(), 2u);
  EXPECT_EQ(card.lines[0].file, "mine/m2.cu");
  EXPECT_TRUE(card.lines[0].shared);
  EXPECT_EQ(card.lines[1].line, 31);
  EXPECT_EQ(card.lines[1].requests, 3u);
  EXPECT_EQ(card.lines[1].units, 68u);
  ASSERT_EQ(card.kernels.size(), 1u);
  EXPECT_EQ(card.kernels[0].name, "gemm<16, 4>");
}

TEST(CardTest, Sums) {
  const CostCard card = example();
  EXPECT_EQ(card.read(), 68u * 32);
  EXPECT_EQ(card.written(), 0u);
  EXPECT_EQ(card.bank_conflicts(), 20u);
  EXPECT_NEAR(card.sectors_per_request(), 68.0 / 3, 1e-12);
  EXPECT_NEAR(card.padded_share(kLeast), 0.25, 1e-12);
  EXPECT_NEAR(card.bytes_ratio(kLeast), 2, 1e-12);
}

TEST(CardTest, NamesTheCountersThatItNeeds) {
  EXPECT_EQ(counters_of(kCounts), (std::vector<std::uint64_t>{4096, 4100, 4104}));
}

TEST(CardTest, WithoutNamesTheSumsAreTheSame) {
  const CostCard card = parse_cost(kCounts, {});
  EXPECT_EQ(card.read(), 68u * 32);
  EXPECT_EQ(card.kernels[0].name, "");
}

TEST(CardTest, RefusesWhatIsNoCard) {
  EXPECT_ANY_THROW(parse_cost("", {}));
  EXPECT_ANY_THROW(parse_cost("{}", {}));
  EXPECT_ANY_THROW(parse_cost(R"({"version":2,"kernels":[]})", {}));
}

TEST(CardTest, TextNamesTheFloorAndTheWastefulLine) {
  const std::string text = cost_text(example(), kLeast, *find_gpu_sheet("a100"), "/nowhere");
  EXPECT_NE(text.find("A100: memory binds"), std::string::npos) << text;
  EXPECT_NE(text.find("mine/m2.cu:31  load or store, reads global"), std::string::npos) << text;
  EXPECT_NE(text.find("3 requests of 22.7 sectors; 4.0 would do"), std::string::npos) << text;
  EXPECT_NE(text.find("25 % of the multiply-adds"), std::string::npos) << text;
}

TEST(CasesTest, EveryStageHasACase) {
  for (const Stage& stage : kStages) {
    const CostCase* one = find_cost_case(stage.id);
    ASSERT_NE(one, nullptr) << stage.id;
    EXPECT_GT(one->least_read, 0) << stage.id;
    EXPECT_GT(one->least_written, 0) << stage.id;
  }
  EXPECT_EQ(find_cost_case("m2", "random/no_such"), nullptr);
  EXPECT_EQ(find_gpu_sheet("rtx4090")->bf16_tflops, 165);
  EXPECT_EQ(find_gpu_sheet("TPU"), nullptr);
}

}  // namespace
}  // namespace moe::driver
