// What bench_stage says without a GPU: everything but the times themselves.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "../m1_align_oracle.h"
#include "cublas.h"
#include "data_sheet.h"
#include "results.h"
#include "shapes.h"

namespace moe::bench {
namespace {

std::vector<int> counts(const char* routing) {
  Shape shape = {"test", 2000, 64, 8, 64, 32};
  EXPECT_TRUE(find_spread(routing, shape.spread));
  const auto routed =
      oracle::route(logits_of(shape), shape.num_tokens, shape.num_experts, shape.top_k, true);
  return counts_of(routed.topk_ids, shape.num_experts);
}

TEST(Shapes, ByNameBySizesAndWithOtherTokens) {
  Shape shape = {};
  EXPECT_TRUE(find_shape("A", 0, shape));
  EXPECT_EQ(shape.num_experts, 64);
  EXPECT_TRUE(find_shape("D64", 0, shape));
  EXPECT_EQ(shape.num_tokens, 64);
  EXPECT_TRUE(find_shape("deepseek-v3", 128, shape));
  EXPECT_EQ(shape.num_tokens, 128);
  EXPECT_EQ(shape.hidden_size, 7168);
  EXPECT_TRUE(find_shape("16,4,2,64,32", 0, shape));
  EXPECT_EQ(shape.intermediate_size, 32);
  for (const char* text : {"nonsense", "", "16,4,2,64", "16,4,2,64,32,1", "16,4,5,64,32",
                           "16,4,2,60,32", "0,4,2,64,32", "16,2000,2,64,32"}) {
    EXPECT_FALSE(find_shape(text, 0, shape)) << text;
  }
}

TEST(Shapes, RoutingsDoWhatTheirNamesSay) {
  const std::vector<int> uniform = counts("uniform");
  const std::vector<int> zipf = counts("zipf");
  const std::vector<int> one_hot = counts("one-hot");
  const std::vector<int> half = counts("half-empty");
  for (const auto& all : {uniform, zipf, one_hot, half}) {
    EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0), 16000);
  }
  EXPECT_LT(*std::max_element(uniform.begin(), uniform.end()), 2 * 250);
  EXPECT_GT(zipf[0], 4 * zipf[20]);
  EXPECT_GT(zipf[20], 0);
  EXPECT_EQ(one_hot[0], 2000) << "every token's first choice";
  for (size_t e = 1; e < half.size(); e += 2) EXPECT_EQ(half[e], 0);
}

TEST(Capacity, CountsWhatIsDroppedAndWasted) {
  const Capacity even = capacity_of({100, 100, 100, 100});
  EXPECT_EQ(even.rows, 125);
  EXPECT_DOUBLE_EQ(even.dropped, 0.0);
  EXPECT_DOUBLE_EQ(even.wasted, 0.2);
  const Capacity skewed = capacity_of({400, 0, 0, 0});
  EXPECT_DOUBLE_EQ(skewed.dropped, 1.0 - 125.0 / 400.0);
  EXPECT_DOUBLE_EQ(skewed.wasted, 0.75);
  EXPECT_EQ(capacity_of({}).rows, 0);
}

TEST(Cublas, ReadsItsLines) {
  CublasTimes times;
  for (const char* line :
       {"dense 1 264.100\n", "dense 2 148.0\n", "grouped 1 300\n", "rubbish\n"}) {
    add_cublas_line(line, times);
  }
  ASSERT_EQ(times.size(), 2u);
  EXPECT_DOUBLE_EQ(dense_us(times, "GEMM1/64"), 264.1);
  EXPECT_DOUBLE_EQ(dense_us(times, "layer"), 412.1);
  EXPECT_DOUBLE_EQ(dense_us(times, "route"), 0.0);
}

TEST(DataSheet, KnowsDevicesAndRefusesMiracles) {
  ASSERT_TRUE(data_sheet_of("NVIDIA H200"));
  EXPECT_EQ(data_sheet_of("NVIDIA H200")->terabytes_s, 4.8);
  EXPECT_EQ(data_sheet_of("NVIDIA GH200 480GB")->terabytes_s, 4.9);
  EXPECT_EQ(data_sheet_of("NVIDIA H20")->bf16_tflops, 148);
  EXPECT_FALSE(data_sheet_of("emulator"));
  const DataSheet h200 = *data_sheet_of("NVIDIA H200");
  EXPECT_NEAR(floor_us(h200, 989e6, 0, false), 1.0, 1e-9);
  EXPECT_NEAR(floor_us(h200, 1979e6, 0, true), 1.0, 1e-9);
  EXPECT_NEAR(floor_us(h200, 0, 4.8e6, false), 1.0, 1e-9);

  Result result;
  result.verdict = "right";
  result.runs = 20;
  result.flops = 206.2e9;
  result.median_us = 209.0;
  refuse_if_too_fast(h200, 0, result);
  EXPECT_TRUE(result.right()) << "no practical limit: 99.8 % of the data sheet is believed";
  result.median_us = 208.0;
  refuse_if_too_fast(h200, 0, result);
  EXPECT_EQ(result.verdict.rfind("refused: ", 0), 0u) << result.verdict;

  Result copy;
  copy.verdict = "right";
  copy.runs = 20;
  copy.bytes = 2 * 4.8e6;
  copy.median_us = 1.5;
  refuse_if_too_fast(h200, 4.8e6, copy);
  EXPECT_TRUE(copy.right()) << "what is written may stay in the cache";
}

Run some_run() {
  Run run;
  run.stage = "m2_grouped_gemm";
  run.shape = kShapes[0];
  run.device = "NVIDIA H200";
  run.sheet = data_sheet_of(run.device);
  run.cublas = {
      {"dense", {264.0, 148.0}}, {"grouped", {400.0, 200.0}}, {"capacity", {500.0, 300.0}}};
  run.capacity = {640, 0.01, 0.2};
  for (const char* side : {"solution", "mine"}) {
    Result result;
    result.what = "GEMM1";
    result.side = side;
    result.verdict = "right";
    result.median_us = 1200.0;
    result.runs = 60;
    result.flops = 206.2e9;
    result.bytes = 520e6;
    result.rows = 32768;
    result.padded_rows = 34816;
    protocol::KernelUse use = {};
    std::string("grouped_gemm_kernel<64>").copy(use.name, sizeof use.name - 1);
    use.registers = 96;
    use.blocks_per_multiprocessor = 5;
    result.kernels = {use};
    run.results.push_back(result);
  }
  run.results[1].median_us = 1320.0;
  return run;
}

TEST(Results, HaveAllThatWasAskedFor) {
  const std::string text = text_of(some_run());
  for (const char* part :
       {"A: T4096 E64 K8 H2048 I768", "routing uniform", "data sheet: 4.8 TB/s, 989 TFLOPS",
        "reference", "1200.0 us", "171.8 TFLOPS", "1.10 x the reference's time",
        "5.00 x cuBLAS dense", "grouped", "dropped 1.0 %, wasted 20.0 %",
        "floor 208.5 us by FLOPs, "
        "108.3 us by bytes",
        "padding 5.9 % of the rows", "96 registers", "5 blocks an SM"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string json = json_of(some_run());
  for (const char* key : {"\"median_us\"", "\"tflops\"", "\"cublas_us\"", "\"floor_us\"",
                          "\"padded_rows\"", "\"kernels\"", "\"dropped\"", "\"routing\""}) {
    EXPECT_NE(json.find(key), std::string::npos) << key << "\n" << json;
  }
}

TEST(Results, AnAlternativeStandsBesideTheReference) {
  bench::Run run = some_run();
  run.results.push_back(run.results[0]);
  run.results.back().side = "one_slot_at_a_time";
  run.results.back().median_us = 1212.0;
  const std::string text = text_of(run);
  EXPECT_NE(text.find("one_slot_at_a_time 1212.0 us"), std::string::npos) << text;
  EXPECT_NE(text.find("one_slot_at_a_time: 1.010 x the reference's time"), std::string::npos)
      << text;
  run.results.back().verdict = "WRONG";
  EXPECT_EQ(text_of(run).find("one_slot_at_a_time: "), std::string::npos) << text;
}

}  // namespace
}  // namespace moe::bench
