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

TEST(Backend, SkipsWhatTheGpuCannotRunAndSaysWhatWouldRun) {
  const Backend l4 = choose_backend(Wish::kAny, {Gpu{"NVIDIA L4", "8.9"}, "/nvcc"});
  EXPECT_EQ(refuse_backend(l4, "", "drill m2"), "");
  const std::string refusal = refuse_backend(l4, "9.0", "drill m6");
  EXPECT_EQ(refusal.rfind("needs a GPU of compute capability 9.0 (its code runs on no other); this "
                          "one, NVIDIA L4, has 8.9. Instead: drill m6 --cpu runs on the emulator, "
                          "and this GPU runs m1 m2 m3 m4 m5",
                          0),
            0u)
      << refusal;
  const Backend b200 = choose_backend(Wish::kAny, {Gpu{"NVIDIA B200", "10.0"}, "/nvcc"});
  EXPECT_NE(refuse_backend(b200, "9.0", "drill m6"), "");
  EXPECT_EQ(refuse_backend(b200, "", "drill m2"), "");
  const Backend t4 = choose_backend(Wish::kAny, {Gpu{"Tesla T4", "7.5"}, "/nvcc"});
  EXPECT_EQ(refuse_backend(t4, "", "drill m2"),
            "needs a GPU of compute capability 8.0 or newer; this one, Tesla T4, has 7.5. Instead: "
            "drill m2 --cpu runs on the emulator.");
  const Backend h200 = choose_backend(Wish::kAny, {kH200, "/nvcc"});
  EXPECT_EQ(refuse_backend(h200, "9.0", "drill m6"), "");
  EXPECT_EQ(refuse_backend(choose_backend(Wish::kCpu, {Gpu{"Tesla T4", "7.5"}, "/nvcc"}), "9.0",
                           "drill m6"),
            "");
}

TEST(Backend, Architectures) {
  EXPECT_EQ(architecture_of("9.0"), "90a");
  EXPECT_EQ(architecture_of("8.6"), "86");
  EXPECT_EQ(architecture_of("12.0"), "120");
}

}  // namespace
}  // namespace moe::driver
