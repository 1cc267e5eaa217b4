#include "driver/padding.h"

#include <gtest/gtest.h>

#include <set>

namespace moe::driver {
namespace {

TEST(Padding, TinyExampleOfTheNotes) {
  const RoutingText tiny = parse_routing("0 1\n1 2\n0 2\n1 0\n");
  ASSERT_EQ(tiny.fault, "");
  EXPECT_EQ(tiny.sizes.num_tokens, 4);
  EXPECT_EQ(tiny.sizes.top_k, 2);
  EXPECT_EQ(tiny.sizes.num_experts, 3);
  const std::vector<std::int64_t> rows = rows_of_experts(tiny.topk_ids, 3);
  EXPECT_EQ(rows, (std::vector<std::int64_t>{3, 3, 2}));

  const Padding blocks = pad_to_blocks(rows, 2);
  EXPECT_EQ(blocks.room, 10);
  EXPECT_EQ(blocks.computed, 8);
  EXPECT_EQ(blocks.dropped, 0);
  EXPECT_DOUBLE_EQ(blocks.wasted(), 0.2);

  EXPECT_EQ(capacity_of(rows, 1.0), 3);  // 8 / 3, rounded up
  const Padding two = pad_to_capacity(rows, 2);
  EXPECT_EQ(two.room, 6);
  EXPECT_EQ(two.computed, 6);
  EXPECT_EQ(two.dropped, 2);
  EXPECT_DOUBLE_EQ(two.dropped_share(), 0.25);
}

TEST(Padding, ReadsCommasCommentsAndUnroutedIds) {
  const RoutingText text = parse_routing("# tokens\n0, -1\n\n 7,3   # the last\n");
  ASSERT_EQ(text.fault, "");
  EXPECT_EQ(text.topk_ids, (std::vector<int>{0, -1, 7, 3}));
  EXPECT_EQ(text.sizes.num_experts, 8);
  EXPECT_EQ(rows_of_experts(text.topk_ids, 8)[7], 1);
}

TEST(Padding, SaysWhatIsWrongWithAFile) {
  EXPECT_EQ(parse_routing("0 1\n2\n").fault, "line 2: 1 id, the first line has 2");
  EXPECT_EQ(parse_routing("0 x\n").fault, "line 1: an id is -1 (not routed) to 65535");
  EXPECT_EQ(parse_routing("0 1\n-2 0\n").fault, "line 2: an id is -1 (not routed) to 65535");
  EXPECT_EQ(parse_routing("# nothing\n").fault, "it names no expert");
  EXPECT_EQ(parse_routing("-1 -1\n").fault, "it names no expert");
}

TEST(Padding, DrawsDistinctExpertsInRange) {
  const RoutingSizes sizes{50, 9, 4};
  for (const std::vector<int>& ids :
       {uniform_routing(sizes, 7), zipf_routing(sizes, 1.5, 7), hot_routing(sizes)}) {
    ASSERT_EQ(ids.size(), 200u);
    for (std::size_t token = 0; token < 50; ++token) {
      const std::set<int> row(ids.begin() + static_cast<std::ptrdiff_t>(token * 4),
                              ids.begin() + static_cast<std::ptrdiff_t>(token * 4 + 4));
      EXPECT_EQ(row.size(), 4u);
      EXPECT_GE(*row.begin(), 0);
      EXPECT_LT(*row.rbegin(), 9);
    }
  }
  EXPECT_EQ(uniform_routing(sizes, 7), uniform_routing(sizes, 7));
  EXPECT_NE(uniform_routing(sizes, 7), uniform_routing(sizes, 8));
}

TEST(Padding, ZipfIsSkewedUniformIsNot) {
  const RoutingSizes sizes{4096, 64, 8};
  const auto even = rows_of_experts(uniform_routing(sizes, 1), 64);
  const auto skewed = rows_of_experts(zipf_routing(sizes, 1.0, 1), 64);
  EXPECT_LT(even[0], 600);
  EXPECT_GT(even[0], 420);
  EXPECT_GT(skewed[0], 3000);  // most tokens name it
  EXPECT_LT(skewed[63], 200);
  const auto hot = rows_of_experts(hot_routing(sizes), 64);
  EXPECT_EQ(hot[7], 4096);
  EXPECT_EQ(hot[8], 0);
}

}  // namespace
}  // namespace moe::driver
