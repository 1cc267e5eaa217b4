#include "driver/headline.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

constexpr const char* kJson = R"({
  "version": 1, "stage": "m2_grouped_gemm", "device": "NVIDIA H200",
  "shape": {"name": "A", "num_tokens": 4096, "num_experts": 64, "top_k": 8, "hidden_size": 2048,
            "intermediate_size": 768},
  "notes": ["power cap: the GPU lowered its clocks to stay within its power limit"],
  "results": [
    {"what": "GEMM1", "side": "solution", "verdict": "right", "median_us": 1200.0, "flops": 206.2e9,
     "cublas_us": 264.0},
    {"what": "GEMM1", "side": "mine", "verdict": "right", "median_us": 1500.0, "flops": 206.2e9,
     "cublas_us": 264.0},
    {"what": "GEMM2", "side": "solution", "verdict": "right", "median_us": 800.0, "flops": 103.1e9,
     "cublas_us": 148.0},
    {"what": "GEMM2", "side": "mine", "verdict": "right", "median_us": 1000.0, "flops": 103.1e9,
     "cublas_us": 148.0}]})";

TEST(Headline, AddsUpTheCallsOfASide) {
  const Headline mine = parse_headline(kJson, "mine");
  EXPECT_EQ(headline_text(mine),
            "  time    2.500 ms, 124 TFLOPS, 1.25 x the reference, 6.07 x cuBLAS dense (shape\n"
            "          A T4096 E64 K8 H2048 I768)\n"
            "          power cap: the GPU lowered its clocks to stay within its power limit\n");
  Headline reference = parse_headline(kJson, "solution");
  reference.side_is_reference = true;
  reference.notes.clear();
  EXPECT_EQ(headline_text(reference),
            "  time    2.000 ms, 155 TFLOPS, 4.85 x cuBLAS dense (shape A T4096 E64 K8 H2048\n"
            "          I768)\n");
}

TEST(Headline, TheGate) {
  const Headline mine = parse_headline(kJson, "mine");
  EXPECT_FALSE(is_slow(mine, 0));
  EXPECT_FALSE(is_slow(mine, 1.3));
  EXPECT_TRUE(is_slow(mine, 1.2));
  EXPECT_EQ(slow_text(mine, 1.2, Paint(false)),
            "SLOW   2.500 ms; the gate is 1.20 x the reference = 2.400 ms on this GPU today.\n"
            "       Correctness is complete.\n");
}

TEST(Headline, WhatIsNotBelievedIsNoTime) {
  std::string json = kJson;
  const std::string right = R"("side": "mine", "verdict": "right")";
  json.replace(json.find(right), right.size(), R"("side": "mine", "verdict": "refused: too fast")");
  const Headline mine = parse_headline(json, "mine");
  EXPECT_EQ(headline_text(mine), "  time    refused: too fast\n");
  EXPECT_FALSE(is_slow(mine, 0.1)) << "nothing is known, so nothing is slow";
}

TEST(Headline, DamagedJsonIsNothingKnown) {
  for (const char* json : {"", "{", "[]", R"({"results": 3})"}) {
    EXPECT_FALSE(parse_headline(json, "mine").known) << json;
  }
}

}  // namespace
}  // namespace moe::driver
