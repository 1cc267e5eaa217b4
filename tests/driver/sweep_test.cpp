// The results file of `drill sweep`, its cliffs and its drawing. The sample is made up, not
// measured.
#include "driver/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "driver/terminal.h"

namespace moe::driver {
namespace {

const std::string kSample = std::string(DRILL_SOURCE_DIR) + "/tests/driver/sample_sweep.tsv";

TEST(Sweep, TokensArePowersOfTwoAndTheirNeighbours) {
  EXPECT_EQ(sweep_tokens(9), (std::vector<int>{1, 2, 3, 4, 5, 7, 8, 9}));
  const std::vector<int> all = sweep_tokens(16384);
  EXPECT_EQ(all.back(), 16384);
  for (const int tokens : {63, 64, 65, 8193, 16383}) {
    EXPECT_TRUE(std::binary_search(all.begin(), all.end(), tokens)) << tokens;
  }
}

TEST(Sweep, TheFileIsReadAndWrittenTheSame) {
  const std::string text = read_file(kSample);
  const Sweep sweep = parse_sweep(text);
  EXPECT_NE(sweep.title.find("SAMPLE"), std::string::npos) << "nobody may take it for a result";
  ASSERT_EQ(sweep.points.size(), 9u);
  EXPECT_EQ(sweep.points[2].num_tokens, 64);
  EXPECT_DOUBLE_EQ(sweep.points[2].layer_us, 300.0);
  EXPECT_EQ(text_of(sweep), text);
}

std::string fault_of(const std::string& text) {
  try {
    parse_sweep(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Sweep, AFileThatIsNoneIsRefused) {
  const std::string head = "# title\ntokens\tfloor_us\tcublas_dense_us\tlayer_us\n";
  EXPECT_EQ(fault_of(""), "line 1: no title");
  EXPECT_EQ(fault_of("# title\n1\t2\t3\t4\n"), "line 2: not the names of the columns");
  EXPECT_EQ(fault_of(head + "1\t2\t3\n"), "line 3: not four numbers");
  EXPECT_EQ(fault_of(head + "1\t2\t3\t4\t5\n"), "line 3: not four numbers");
  EXPECT_EQ(fault_of(head + "2\t1\t1\t1\n2\t1\t1\t1\n"), "line 4: tokens do not ascend from 1");
  EXPECT_EQ(fault_of(head + "1\t1\t1\t0\n"), "line 3: no time of a layer");
  EXPECT_EQ(fault_of(head + "1\t1\t1\t1\n"), "fewer than two points");
}

TEST(Sweep, ACliffIsAPointSlowerThanItsLargerNeighbour) {
  Sweep sweep = {"", {{1, 1, 0, 10.0}, {2, 1, 0, 9.6}, {3, 1, 0, 9.0}, {4, 1, 0, 20.0}}};
  const std::vector<std::string> cliffs = cliffs_of(sweep);
  ASSERT_EQ(cliffs.size(), 1u) << "4 % are none, 7 % are one";
  EXPECT_EQ(cliffs[0], "T = 2 takes 9.6 us, T = 3 only 9.0 us");
}

TEST(Sweep, APointComesFromWhatTheBenchWrote) {
  const std::string json =
      R"({"shape": {"num_tokens": 64}, "results": [{"verdict": "right", "median_us": 300.5,
          "floor_us": 247.6, "cublas_us": 12.5}]})";
  const SweepPoint point = point_of_bench(json);
  EXPECT_EQ(point.num_tokens, 64);
  EXPECT_DOUBLE_EQ(point.floor_us, 247.6);
  EXPECT_DOUBLE_EQ(point.dense_us, 12.5);
  EXPECT_DOUBLE_EQ(point.layer_us, 300.5);
  std::string wrong = json;
  wrong.replace(wrong.find("right"), 5, "WRONG");
  EXPECT_THROW(point_of_bench(wrong), std::runtime_error);
}

TEST(Sweep, TheDrawingHasThreeLinesAndItsTitle) {
  Sweep sweep = parse_sweep(read_file(kSample));
  const std::string svg = svg_of(sweep);
  const auto count = [&](const std::string& text, const char* word) {
    std::size_t found = 0;
    for (std::size_t i = text.find(word); i != std::string::npos; i = text.find(word, i + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count(svg, "<polyline"), 3u);
  EXPECT_EQ(count(svg, "SAMPLE"), 2u) << "as title and in the drawing";
  const std::size_t layer = svg.find("<polyline class=\"layer\"");
  ASSERT_NE(layer, std::string::npos);
  EXPECT_EQ(count(svg.substr(layer, svg.find("/>", layer) - layer), ","), sweep.points.size());
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  for (SweepPoint& point : sweep.points) point.dense_us = 0.0;
  EXPECT_EQ(count(svg_of(sweep), "<polyline"), 2u) << "what was not timed is not drawn";
}

}  // namespace
}  // namespace moe::driver
