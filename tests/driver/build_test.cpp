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
                "cooperative groups are not emulated");
  expect_advice("x.cu:1:10: fatal error: 'cub/cub.cuh' file not found", "CUB is not emulated");
  expect_advice("x.cu:1:10: fatal error: mma.h: No such file or directory", "mma_m16n8k16()");
  expect_advice("x.cu(1): catastrophic error: cannot open source file \"cute/tensor.hpp\"",
                "CUTLASS and CuTe");
  expect_advice("x.cu:1:10: fatal error: my_helpers.h: No such file or directory",
                "<my_helpers.h> is not there");
}

TEST(BuildAdvice, LibrariesByTheLineThatUsesThem) {
  const std::string source =
      "using cub::WarpReduce;\n"
      "namespace cg = cooperative_groups;\n"
      "int cubic = 0;\n";
  const auto said = [&](const std::string& text) {
    return advice_for({text, "m2_grouped_gemm", source, kContract});
  };
  EXPECT_NE(said("m2_grouped_gemm.cu:1:7: error: 'cub' has not been declared").find("CUB is not"),
            std::string::npos);
  EXPECT_NE(said("m2_grouped_gemm.cu:2:16: error: no").find("cooperative groups"),
            std::string::npos);
  EXPECT_EQ(said("m2_grouped_gemm.cu:3:5: error: no"), "");
}

TEST(BuildAdvice, PrettyQuotationMarks) {
  for (const char* text :
       {"x.cu:9:1: error: stray '\\342' in program",
        "x.cu:9:1: error: extended character \xe2\x80\x9c is not valid in an identifier",
        "x.cu:9:1: error: unexpected character <U+201C>", "x.cu(9): error: unrecognized token"}) {
    expect_advice(text, "no ASCII outside of a comment");
  }
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
  const std::string source = "  asm volatile(\"mov.u32 %0, %laneid;\" : \"=r\"(lane));\n";
  for (const char* text : {"m2_grouped_gemm.cu:1:3: error: impossible constraint in 'asm'",
                           "m2_grouped_gemm.cu:1:3: error: invalid output constraint '=l' in asm",
                           "/tmp/cc.s:77: Error: unknown mnemonic `mov.u32'"}) {
    EXPECT_NE(advice_for({text, "m2_grouped_gemm", source, kContract}).find("<drills/ptx.h>"),
              std::string::npos)
        << text;
  }
}

TEST(BuildAdvice, SaysNothingWhereNothingIsKnown) {
  EXPECT_EQ(advice("mine/m2_grouped_gemm.cu:1:3: error: expected ';' before '}' token"), "");
  EXPECT_EQ(advice(""), "");
}

}  // namespace
}  // namespace moe::driver
