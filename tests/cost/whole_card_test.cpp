// Whole cards, from the runners of the tree cpu-traced (its targets cost_variants and *.solution).
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "driver/build.h"
#include "driver/cost/measure.h"

namespace moe::driver {
namespace {

constexpr std::size_t kL2 = std::size_t{50} * 1000 * 1000;

const std::filesystem::path& root() {
  static const std::filesystem::path folder = DRILL_SOURCE_DIR;
  return folder;
}

// `kernel`: "solution", or the name of a variant.
CostRun card_of(const Stage& stage, const std::string& kernel) {
  const Course course{root()};
  const std::filesystem::path tree = course.tree(kTracedTree);
  CostProgram program;
  program.test = test_path(course, stage);
  program.side = kernel == "solution" ? "solution" : "mine";
  program.runner =
      tree / (kernel == "solution" ? "runners" : "cost_variants") / (stage.stem + ("." + kernel));
  program.binary = program.runner;
  program.root = root();
  const std::string unique = std::to_string(getpid());
  program.counts = tree / ("test." + unique + ".json");
  program.report = tree / ("test." + unique + ".report");
  EXPECT_TRUE(std::filesystem::exists(program.runner)) << program.runner << " is not built";
  return measure_cost(program, *find_cost_case(stage.id), kL2);
}

// All lines whose source text holds `text`.
struct Sum {
  double units = 0;
  double least = 0;
};

Sum sum_of(const CostCard& card, const std::string& via, bool shared) {
  Sum sum;
  for (const CostLine& line : card.lines) {
    if (line.via != via || line.shared != shared) continue;
    sum.units += static_cast<double>(line.units);
    sum.least += static_cast<double>(line.least);
  }
  return sum;
}

class Solutions : public testing::TestWithParam<Stage> {};

TEST_P(Solutions, GiveTheSameCardTwice) {
  ASSERT_NE(find_cost_case(GetParam().id), nullptr) << GetParam().id << " has no case";
  const CostCase& least = *find_cost_case(GetParam().id);
  const CostRun first = card_of(GetParam(), "solution");
  const CostRun second = card_of(GetParam(), "solution");
  ASSERT_EQ(first.trouble, "");
  EXPECT_EQ(first.verdict, Verdict::kPass);
  const GpuSheet& gpu = *find_gpu_sheet("H200");
  EXPECT_EQ(cost_json(first.card, least, gpu, "solution"),
            cost_json(second.card, least, gpu, "solution"));
  // The least is one: nothing reads or writes fewer bytes.
  EXPECT_GE(static_cast<double>(first.card.read()), least.least_read);
  EXPECT_GE(static_cast<double>(first.card.written()), least.least_written);
  EXPECT_GE(static_cast<double>(first.card.dram_read), least.least_read);
  EXPECT_GE(static_cast<double>(first.card.dram_written), least.least_written);
  EXPECT_GE(static_cast<double>(first.card.flops), least.flops);
  for (const CostLine& line : first.card.lines) {
    const bool known = line.file.rfind("solutions/", 0) == 0 || line.file.rfind("drills/", 0) == 0;
    EXPECT_TRUE(known) << line.file << ":" << line.line;
    EXPECT_GE(line.units, line.least);
  }
}

INSTANTIATE_TEST_SUITE_P(, Solutions, testing::ValuesIn(kStages), [](const auto& stage) {
  return std::string(stage.param.id);
});

TEST(Variants, StridedLoadsTouchTwiceTheSectors) {
  const Stage& stage = *find_stage("m2");
  const CostRun good = card_of(stage, "solution");
  const CostRun bad = card_of(stage, "strided_loads");
  ASSERT_EQ(bad.verdict, Verdict::kPass);
  const Sum before = sum_of(good.card, "cp.async", false);
  const Sum after = sum_of(bad.card, "cp.async", false);
  EXPECT_EQ(before.units, before.least);
  EXPECT_GE(after.units, 1.9 * after.least);
}

TEST(Variants, ShortRowsConflict) {
  const Stage& stage = *find_stage("m2");
  const CostRun good = card_of(stage, "solution");
  const CostRun bad = card_of(stage, "conflicting_layout");
  ASSERT_EQ(bad.verdict, Verdict::kPass);
  const Sum before = sum_of(good.card, "ldmatrix", true);
  const Sum after = sum_of(bad.card, "ldmatrix", true);
  EXPECT_EQ(before.units, before.least);
  EXPECT_EQ(after.units, 4 * after.least);
}

TEST(Variants, UnorderedTilesFetchMore) {
  const Stage& stage = *find_stage("m4");
  const CostRun good = card_of(stage, "solution");
  const CostRun bad = card_of(stage, "unordered_tiles");
  ASSERT_EQ(bad.trouble, "");
  EXPECT_EQ(bad.card.read(), good.card.read()) << "between blocks and L2 nothing changes";
  EXPECT_GE(static_cast<double>(bad.card.dram_read),
            1.2 * static_cast<double>(good.card.dram_read));
}

}  // namespace
}  // namespace moe::driver
