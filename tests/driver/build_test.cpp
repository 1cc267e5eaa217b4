#include "driver/build.h"

#include <gtest/gtest.h>

#include "driver/build_advice.h"

namespace moe::driver {
namespace {

constexpr const char* kSource =
    "namespace moe::mine {\n"
    "  scale<<<grid, block>>>(x);\n"
    "  extern __shared__ float tile[];\n"
    "  int topk = 0;\n";
constexpr const char* kContract = "cudaError_t grouped_gemm(void* out, int top_k, int block_m);\n";

std::string advice(const std::string& compiler_text) {
  return advice_for({compiler_text, "m2_grouped_gemm", kSource, kContract});
}

void expect_advice(const std::string& compiler_text, const std::string& part) {
  EXPECT_NE(advice(compiler_text).find(part), std::string::npos) << compiler_text << "\n"
                                                                 << advice(compiler_text);
}

TEST(Build, KeepsOnlyTheCompilersWords) {
  EXPECT_EQ(compiler_text_of("[0/1] Re-running CMake...\n"
                             "-- Configuring done\n"
                             "[1/2] Building CXX object x.o\n"
                             "FAILED: x.o \n"
                             "/usr/bin/c++ -c x.cu\n"
                             "x.cu:3:5: error: no\n"
                             "    3 | [1/2] not ninja's\n"
                             "ninja: build stopped: subcommand failed.\n"),
            "x.cu:3:5: error: no\n"
            "    3 | [1/2] not ninja's\n");
}

TEST(Build, CountsDiagnosticsOfAllTools) {
  const std::string text =
      "x.cu:3:5: error: one\n"
      "    3 | error: an excerpt\n"
      "x.cu(4): error: two (nvcc)\n"
      "x.cu:5:1: fatal error: three\n"
      "/tmp/x.s:9: Error: four (assembler)\n"
      "x.cu:(.text+0x9): undefined reference to `five'\n"
      "x.cu:6:1: warning: just this\n"
      "collect2: error: ld returned 1 exit status\n";
  EXPECT_EQ(count_diagnostics(text, "error"), 5u);
  EXPECT_EQ(count_diagnostics(text, "warning"), 1u);
}

TEST(BuildAdvice, LaunchSyntax) {
  expect_advice("/a b/mine/m2_grouped_gemm.cu:2:8: error: expected primary-expression", "launch(");
}

TEST(BuildAdvice, ExternShared) {
  expect_advice("mine/m2_grouped_gemm.cu:3:3: error: conflicting specifiers",
                "dynamic_shared<T>()");
  expect_advice("m2.cu:(.text+0x9): undefined reference to `moe::mine::tile'",
                "dynamic_shared<T>()");
}

TEST(BuildAdvice, UnknownIntrinsicOfEveryCompiler) {
  for (const char* text : {"x.cu:9:1: error: '__fancy' was not declared in this scope",
                           "x.cu:9:1: error: \xe2\x80\x98__fancy\xe2\x80\x99 was not declared",
                           "x.cu:9:1: error: use of undeclared identifier '__fancy'",
                           "x.cu(9): error: identifier \"__fancy\" is undefined"}) {
    expect_advice(text, "__fancy is not among the device functions");
  }
}

TEST(BuildAdvice, NameThatTheContractSpellsOtherwise) {
  expect_advice("x.cu:9:1: error: 'topk' was not declared in this scope",
                "drills/m2_grouped_gemm.h, calls it top_k");
  EXPECT_EQ(advice("x.cu:9:1: error: 'completely_different' was not declared in this scope"), "");
}

TEST(BuildAdvice, MissingHeader) {
  expect_advice("x.cu:1:10: fatal error: cooperative_groups.h: No such file or directory",
                "<cooperative_groups.h> is not there");
  expect_advice("x.cu:1:10: fatal error: 'cub/cub.cuh' file not found", "<cub/cub.cuh>");
  expect_advice("x.cu(1): catastrophic error: cannot open source file \"cute/tensor.hpp\"",
                "<cute/tensor.hpp>");
}

TEST(BuildAdvice, ChangedSignature) {
  const std::string source = "int f();\n";
  for (const char* text :
       {"runner.cpp:(.text+0x9): undefined reference to `moe::mine::grouped_gemm(void*, int)'",
        "x.cu:9:1: error: ambiguating new declaration of 'int moe::mine::grouped_gemm()'",
        "x.cu:9:1: error: functions that differ only in their return type cannot be overloaded"}) {
    const std::string said = advice_for({text, "m2_grouped_gemm", source, kContract});
    EXPECT_NE(said.find("exactly the signature"), std::string::npos) << text << "\n" << said;
  }
}

TEST(BuildAdvice, InlinePtx) {
  expect_advice("/tmp/cc.s:77: Error: no such instruction: `mma.sync.aligned'", "<drills/ptx.h>");
}

TEST(BuildAdvice, SaysNothingWhereNothingIsKnown) {
  EXPECT_EQ(advice("mine/m2_grouped_gemm.cu:1:3: error: expected ';' before '}' token"), "");
  EXPECT_EQ(advice(""), "");
}

}  // namespace
}  // namespace moe::driver
