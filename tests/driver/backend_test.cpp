#include "driver/backend.h"

#include <gtest/gtest.h>

namespace moe::driver {
namespace {

const Gpu kH200{"NVIDIA H200", "9.0"};

TEST(Backend, TakesTheGpuWhenEverythingIsThere) {
  const Backend backend = choose_backend(Wish::kAny, {kH200, "/usr/local/cuda/bin/nvcc"});
  EXPECT_TRUE(backend.cuda);
  EXPECT_STREQ(backend.name(), "cuda");
  EXPECT_EQ(backend.architecture, "90a");
  EXPECT_EQ(backend.phrase, "NVIDIA H200 (sm_90a)");
  EXPECT_EQ(backend.refusal, "");
}

TEST(Backend, SaysWhyItTakesTheEmulator) {
  EXPECT_EQ(choose_backend(Wish::kAny, {std::nullopt, "/nvcc"}).phrase, "emulator (no GPU found)");
  EXPECT_EQ(choose_backend(Wish::kAny, {kH200, ""}).phrase, "emulator (a GPU, but no nvcc)");
  const Backend forced = choose_backend(Wish::kCpu, {kH200, "/nvcc"});
  EXPECT_FALSE(forced.cuda);
  EXPECT_EQ(forced.phrase, "emulator (--cpu)");
}

TEST(Backend, RefusesAGpuThatIsNotThere) {
  EXPECT_EQ(choose_backend(Wish::kGpu, {std::nullopt, "/nvcc"}).refusal,
            "nvidia-smi sees no GPU here");
  EXPECT_NE(choose_backend(Wish::kGpu, {kH200, ""}).refusal.find("no CUDA Toolkit"),
            std::string::npos);
  EXPECT_EQ(choose_backend(Wish::kGpu, {kH200, "/nvcc"}).refusal, "");
}

TEST(Backend, ReadsNvidiaSmi) {
  const std::optional<Gpu> gpu = parse_gpu_list("NVIDIA GeForce RTX 3090, 8.6\nTesla T4, 7.5\n");
  ASSERT_TRUE(gpu);
  EXPECT_EQ(gpu->name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(gpu->capability, "8.6");
  EXPECT_FALSE(parse_gpu_list(""));
  EXPECT_FALSE(parse_gpu_list("No devices were found\n"));
  EXPECT_FALSE(parse_gpu_list("Quadro, [Not Supported]\n"));
}

TEST(Backend, Architectures) {
  EXPECT_EQ(architecture_of("9.0"), "90a");
  EXPECT_EQ(architecture_of("8.6"), "86");
  EXPECT_EQ(architecture_of("12.0"), "120");
}

}  // namespace
}  // namespace moe::driver
