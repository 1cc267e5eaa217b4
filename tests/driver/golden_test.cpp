// Whole runs of `drill m2 --cpu`, one for every verdict, compared with golden/*.txt: what a learner
// reads is part of what the course promises. DRILL_UPDATE_GOLDEN=1 writes the files anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <regex>

#include "course_copy.h"
#include "driver/course.h"
#include "driver/headline.h"
#include "driver/report.h"
#include "driver/skeleton.h"
#include "driver/state.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

constexpr const char* kSolution = "solutions/m2_grouped_gemm.cu";
constexpr const char* kMine = "mine/m2_grouped_gemm.cu";

class Golden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    course = new CourseCopy(DRILL_SOURCE_DIR, DRILL_COPY_DIR);
    // m1 is blank in the copy whatever the learner has done, so that what is next is known.
    course->write("mine/m1_align.cu",
                  make_skeleton(course->read("solutions/m1_align.cu"), "m1_align.cu", "m1"));
  }
  static void TearDownTestSuite() {
    delete course;
    course = nullptr;
  }

  // The solution with one snippet replaced, as the learner's file.
  static void write_mine(const std::string& snippet = "", const std::string& by = "") {
    std::string text = course->read(kSolution);
    const std::size_t at = text.find(snippet);
    ASSERT_NE(at, std::string::npos) << kSolution << " no longer contains: " << snippet;
    course->write(kMine, text.replace(at, snippet.size(), by));
  }

  static void write_blank() {
    course->write(kMine, make_skeleton(course->read(kSolution), kSolution, "m2"));
  }

  static void expect_transcript(const std::string& name, const std::string& arguments, int code) {
    const CourseCopy::Transcript transcript = course->run(arguments);
    EXPECT_EQ(transcript.exit_code, code) << transcript.text;
    if (transcript.exit_code == code) expect_text(name, transcript.text);
  }

  static void expect_text(const std::string& name, const std::string& text) {
    for (const std::string& line : split_lines(text)) {
      // Compilers and source files have lines of their own length.
      const bool foreign = line.find("error: ") != std::string::npos ||
                           name.rfind("diff", 0) == 0 || name == "solution";
      EXPECT_TRUE(foreign || line.size() <= kColumns) << line;
    }
    const std::string file =
        std::string(DRILL_SOURCE_DIR) + "/tests/driver/golden/" + name + ".txt";
    if (std::getenv("DRILL_UPDATE_GOLDEN") != nullptr) {
      std::ofstream(file, std::ios::binary) << text;
      return;
    }
    EXPECT_EQ(text, read_file(file)) << "differs from " << file;
  }

  static CourseCopy* course;
};

CourseCopy* Golden::course = nullptr;

TEST_F(Golden, Pass) {
  write_mine();
  expect_transcript("pass", "m2 --cpu", 0);
}

TEST_F(Golden, PassOfTheSolution) {
  expect_transcript("pass_solution", "m2 --cpu --solution", 0);
}

TEST_F(Golden, Todo) {
  write_blank();
  expect_transcript("todo", "m2 --cpu", 3);
}

TEST_F(Golden, WrongRowInGemm1) {
  write_mine("p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id", "flat_id");
  expect_transcript("wrong_row_in_gemm1", "m2 --cpu", 1);
}

TEST_F(Golden, WrongRowInGemm2) {
  write_mine("p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id", "flat_id / p.top_k");
  expect_transcript("wrong_row_in_gemm2", "m2 --cpu", 1);
}

TEST_F(Golden, Build) {
  write_mine("flat_id / p.top_k", "flat_id / topk");
  expect_transcript("build", "m2 --cpu", 4);
}

TEST_F(Golden, BuildWithLaunchSyntax) {
  write_mine("const dim3 grid(num_blocks",
             "grouped_gemm_kernel<BLOCK_M><<<num_blocks, 128>>>(p);\n"
             "  const dim3 grid(num_blocks");
  expect_transcript("build_launch", "m2 --cpu", 4);
}

TEST_F(Golden, Crash) {
  write_mine("p.out + static_cast<int64_t>(flat_id) * p.n;",
             "p.out + (int64_t{1} << 45) + static_cast<int64_t>(flat_id) * p.n;");
  expect_transcript("crash", "m2 --cpu", 5);
}

TEST_F(Golden, Hang) {
  write_mine("const int turns = ",
             "for (volatile bool again = true; again;) {\n  }\n  const int turns = ");
  expect_transcript("hang", "m2 --cpu", 6);
}

TEST_F(Golden, Printf) {
  write_mine(
      "const int turns = ",
      "if (pid_m == 0 && thread == 0) printf(\"expert %d\\n\", expert);\n  const int turns = ");
  expect_transcript("printf", "m2 --cpu --case tiny", 0);
}

// One mistake, and every way in which the command helps with it.
TEST_F(Golden, HelpWithAMistake) {
  course->run_shell("rm -rf .drill");
  write_mine("p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id", "flat_id");
  ASSERT_EQ(course->run("m2 --cpu").exit_code, 1);
  expect_transcript("hint_first", "hint m2", 0);
  expect_transcript("hint_second", "hint m2", 0);
  expect_transcript("map", "m2 --cpu --case tiny/t4k2 --map", 1);
  expect_transcript("print", "m2 --cpu --print 1,0", 1);
  expect_transcript("explain", "explain M2-FLATROW", 0);
  expect_transcript("explain_general", "explain RACE", 0);
  expect_transcript("explain_unknown", "explain M2-FLATROWS", 2);
  expect_transcript("notes", "notes m2 gather", 0);
  expect_transcript("notes_unknown", "notes m2 gahter", 2);
  expect_transcript("solution_refused", "solution m2 </dev/null", 2);
  expect_transcript("solution", "solution m2 gather --yes", 0);
  expect_transcript("debug", "debug m2 --region nowhere --show", 2);
  expect_transcript("worklog", "worklog m2", 0);
}

TEST_F(Golden, DiffAgainstTheBlankFileThenTheReference) {
  write_blank();
  expect_transcript("diff_blank", "diff m2", 0);
  write_mine("  const int turns = ", "  /* mine */ const int turns = ");
  ASSERT_EQ(course->run("m2 --cpu").exit_code, 0);
  expect_transcript("diff_solution", "diff m2", 0);
}

// Every state that is remembered, as `drill` shows it.
TEST_F(Golden, States) {
  write_mine();
  const std::uint64_t hash =
      work_hash(Course{DRILL_COPY_DIR}, *find_stage("m2"), course->read(kMine));
  std::string all;
  for (const char* verdict : {"pass", "wrong", "todo", "crash", "hang", "build", "slow", "skip"}) {
    const std::string word = verdict;
    const std::string detail = word == "pass" || word == "slow"     ? "quick"
                               : word == "wrong" || word == "crash" ? "tiny/t4k2"
                                                                    : "-";
    States states;
    states["m2_grouped_gemm"] = {hash, word, std::time(nullptr), detail};
    write_states(DRILL_COPY_DIR, states);
    for (const std::string& line : split_lines(course->run("").text)) {
      // The titles of other stages set the columns.
      if (line.rfind("m2 ", 0) == 0)
        all += std::regex_replace(line, std::regex(" {2,}"), "  ") + "\n";
    }
  }
  expect_text("states", all);
  Headline slow = parse_headline(
      R"({"shape": {"name": "A"}, "results": [
          {"side": "mine", "verdict": "right", "median_us": 2310, "flops": 309.2e9},
          {"side": "solution", "verdict": "right", "median_us": 1250}]})",
      "mine");
  slow.shape = "shape A";
  expect_text("slow", headline_text(slow) + slow_text(slow, 1.5, Paint(false)));
}

// A copy for a class: no line of a solution's blanks is in it, and everything still works.
TEST_F(Golden, ExportWithoutSolutions) {
  course->run_shell("rm -rf ../class");
  EXPECT_EQ(course->run("export ../class").exit_code, 2) << "with solutions it is a clone";
  const CourseCopy::Transcript made = course->run("export --without-solutions --cpu ../class");
  ASSERT_EQ(made.exit_code, 0) << made.text;
  EXPECT_EQ(course->run("export --without-solutions --cpu ../class").exit_code, 70)
      << "never over what is there";
  const CourseCopy::Transcript leaks = course->run_shell(
      "cd ../class && ls solutions/*.cu tests/wrong tests/alternative 2>/dev/null;"
      "grep -rlF 'atomicAdd(&cursors[expert]' .; grep -c DRILL_TODO mine/*.cu | grep ':0$'");
  EXPECT_EQ(leaks.text, "");
  const auto in_class = [&](const std::string& arguments) {
    return course->run_shell(
        "command=$PWD/build/host/drill_command; cd ../class && "
        "DRILL_ROOT=$PWD \"$command\" " +
        arguments);
  };
  const CourseCopy::Transcript blank = in_class("m1 --cpu");
  EXPECT_EQ(blank.exit_code, 3) << blank.text;
  EXPECT_EQ(in_class("solution m1 --yes").exit_code, 2);
  EXPECT_EQ(in_class("diff m1").exit_code, 0);
  EXPECT_EQ(in_class("hint m1").exit_code, 0);
  const CourseCopy::Transcript reference = in_class("m1 --cpu --solution");
  EXPECT_EQ(reference.exit_code, 0) << reference.text << "the reference runs as machine code";
  const CourseCopy::Transcript no_gpu_side = course->run_shell(
      "tools=$(mktemp -d); printf '#!/bin/sh\necho Some GPU, 9.0\n' >$tools/nvidia-smi; cp "
      "$tools/nvidia-smi $tools/nvcc; chmod +x $tools/*; command=$PWD/build/host/drill_command; "
      "cd ../class && CUDA_VISIBLE_DEVICES=0 PATH=$tools:$PATH DRILL_ROOT=$PWD \"$command\" m1 "
      "--gpu --solution");
  EXPECT_EQ(no_gpu_side.exit_code, 77) << no_gpu_side.text;
  course->run_shell("cp solutions/m1_align.cu ../class/mine/");
  const CourseCopy::Transcript solved = in_class("m1 --cpu");
  EXPECT_EQ(solved.exit_code, 0) << solved.text;
  const CourseCopy::Transcript diff = in_class("diff m1");  // there is only the blank file
  EXPECT_EQ(diff.exit_code, 0) << diff.text;
  EXPECT_NE(diff.text.find("-  DRILL_TODO"), std::string::npos) << diff.text;
  EXPECT_EQ(in_class("diff m1 --solution").exit_code, 2);
  EXPECT_EQ(in_class("reset m1 --yes").exit_code, 0);
  EXPECT_EQ(in_class("m1 --cpu").exit_code, 3);
  course->run_shell("rm -rf ../class");
}

TEST_F(Golden, EveryVerbHasHelp) {
  const CourseCopy::Transcript all = course->run("-h");
  EXPECT_EQ(all.exit_code, 0);
  for (const std::string& line : split_lines(all.text)) EXPECT_LE(line.size(), kColumns) << line;
  int verbs = 0;
  bool listing = false;
  for (const std::string& line : split_lines(all.text)) {
    listing = listing || line == "Subcommands:";
    if (!listing || line.rfind("  ", 0) != 0) continue;
    std::string verb = line.substr(2, line.find(' ', 2) - 2);
    if (verb == "mN") verb = "m2";
    ++verbs;
    if (verb == "grade")
      continue;  // builds the grader first; .ci/run asks for it where it is built
    const CourseCopy::Transcript help = course->run(verb + " -h");
    EXPECT_EQ(help.exit_code, 0) << verb;
    EXPECT_NE(help.text.find("usage: drill"), std::string::npos) << verb << help.text;
    for (const std::string& said : split_lines(help.text)) EXPECT_LE(said.size(), kColumns) << said;
  }
  EXPECT_GE(verbs, 18);
}

TEST_F(Golden, WhatTheOtherVerbsSay) {
  write_blank();
  expect_transcript("reset_blank", "reset m2", 0);
  expect_transcript("unknown_verb", "lsit", 2);
  expect_transcript("unknown_case", "m2 --cpu --case edge/no_such_case", 2);
  expect_transcript("no_gpu", "m2 --gpu", 77);
  expect_transcript("unknown_alternative", "bench m2 --solution --alternative nope", 2);
  expect_transcript("bench_layer", "bench layer", 77);
  expect_transcript("bench_layer_peers", "bench layer --peers --shape A", 0);
}

// The emulator as another GPU: hello is all that is asked of the runner.
TEST_F(Golden, ADeviceOfTheWrongCapabilityIsSkipped) {
  ASSERT_EQ(course->run("m2 --cpu --solution").exit_code, 0);
  const std::string test =
      "build/host/tests/m2_grouped_gemm_test --runner build/cpu/runners/m2_grouped_gemm.solution "
      "--requires-capability 9.0 --report build/host/capability.jsonl";
  EXPECT_EQ(course->run_shell(test).exit_code, 0);
  const CourseCopy::Transcript other = course->run_shell("EMULATOR_CAPABILITY=8.9 " + test);
  EXPECT_EQ(other.exit_code, 77) << other.text;
  const Report report = parse_report(course->read("build/host/capability.jsonl"));
  EXPECT_EQ(report.count(CaseState::kSkip), report.cases.size());
  EXPECT_EQ(report.cases.front().sentence.rfind(
                "needs a GPU of compute capability 9.0 (its code runs on no other); this one, "
                "emulator, has 8.9. Instead: drill m2 --cpu runs on the emulator, and this GPU "
                "runs m1 m2",
                0),
            0u)
      << report.cases.front().sentence;
  const CourseCopy::Transcript old =
      course->run_shell("EMULATOR_CAPABILITY=7.5 ./drill m2 --cpu --solution");
  EXPECT_EQ(old.exit_code, 77);
  EXPECT_NE(old.text.find("SKIP   m2: needs a GPU of compute capability 8.0 or newer"),
            std::string::npos)
      << old.text;
}

TEST_F(Golden, TheStateIsRememberedUntilTheFileChanges) {
  write_mine();
  ASSERT_EQ(course->run("m2 --cpu").exit_code, 0);
  EXPECT_NE(course->run("").text.find("PASS   quick set"), std::string::npos);
  write_blank();
  EXPECT_NE(course->run("").text.find("edited was PASS"), std::string::npos);
  course->run_shell("echo nonsense > .drill/state");
  const CourseCopy::Transcript healed = course->run("");
  EXPECT_EQ(healed.exit_code, 0);
  EXPECT_NE(healed.text.find("new    6 regions to write"), std::string::npos) << healed.text;
}

TEST_F(Golden, ResetKeepsTheFileAndSaysHowToGetItBack) {
  write_mine();
  EXPECT_EQ(course->run("reset m2 </dev/null").exit_code, 2) << "no terminal, no --yes: refused";
  EXPECT_EQ(course->read(kMine), course->read(kSolution));

  const CourseCopy::Transcript reset = course->run_shell("./drill reset m2 --yes");
  EXPECT_EQ(reset.exit_code, 0);
  EXPECT_EQ(course->read(kMine), make_skeleton(course->read(kSolution), kSolution, "m2"));

  const std::size_t undo = reset.text.find("cp .drill/trash/");
  ASSERT_NE(undo, std::string::npos) << reset.text;
  EXPECT_EQ(course->run_shell(reset.text.substr(undo)).exit_code, 0);
  EXPECT_EQ(course->read(kMine), course->read(kSolution));
}

TEST_F(Golden, AnOlderFileThatIsPutBackIsCompiled) {
  write_mine("p.rows == Rows::kTokens ? flat_id / p.top_k : flat_id", "flat_id");
  EXPECT_EQ(course->run("m2 --cpu").exit_code, 1);
  course->write_old(kMine, course->read(kSolution));
  EXPECT_EQ(course->run("m2 --cpu").exit_code, 0);
}

TEST_F(Golden, ABrokenStageBlocksNoOther) {
  const std::string blank = course->read("mine/m1_align.cu");
  course->write("mine/m1_align.cu", "this does not compile\n");
  write_mine();
  EXPECT_EQ(course->run("m2 --cpu").exit_code, 0);
  EXPECT_EQ(course->run("m1 --cpu").exit_code, 4);
  course->write("mine/m1_align.cu", blank);
}

TEST_F(Golden, AMissingFileIsMadeAnew) {
  write_mine();
  course->run_shell("rm mine/m1_align.cu");
  const CourseCopy::Transcript transcript = course->run("m2 --cpu");
  EXPECT_EQ(transcript.exit_code, 0);
  EXPECT_NE(transcript.text.find("mine/m1_align.cu was missing"), std::string::npos);
  EXPECT_EQ(course->read("mine/m1_align.cu"),
            make_skeleton(course->read("solutions/m1_align.cu"), "m1_align.cu", "m1"));
}

TEST_F(Golden, RunsFromAnywhereThroughASymlink) {
  const CourseCopy::Transcript listed = course->run_shell(
      "here=$PWD; folder=$(mktemp -d) && cd \"$folder\" && ln -s \"$here/drill\" 'a drill' && "
      "'./a drill' list; code=$?; rm -r \"$folder\"; exit $code");
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.text.find("mine/m2_grouped_gemm.cu"), std::string::npos) << listed.text;
}

}  // namespace
}  // namespace moe::driver
