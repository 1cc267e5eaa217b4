#include "driver/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

namespace moe::driver {
namespace {

Command shell(const std::string& script) {
  Command command;
  command.arguments = {"sh", "-c", script};
  return command;
}

TEST(Process, CollectsOutputAndExitCode) {
  std::string streamed;
  Watcher watcher;
  watcher.on_output = [&](std::string_view text) { streamed += text; };
  const Outcome outcome = run_process(shell("echo out; echo err >&2; exit 3"), watcher);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.signal, 0);
  EXPECT_EQ(outcome.output, "out\nerr\n");
  EXPECT_EQ(streamed, outcome.output);
}

TEST(Process, KeepsAllOfALongOutput) {
  const Outcome outcome =
      run_process(shell("i=0; while [ $i -lt 20000 ]; do echo 0123456789; "
                        "i=$((i+1)); done"));
  EXPECT_EQ(outcome.output.size(), 220000u);
}

TEST(Process, RunsInAFolderWithAnEnvironmentAndNoInput) {
  Command command = shell("pwd; echo $DRILL_WORD; cat");
  command.folder = "/";
  command.environment = {"DRILL_WORD=two words"};
  EXPECT_EQ(run_process(command).output, "/\ntwo words\n");
}

TEST(Process, ChildrenGetNoneOfOurFiles) {
  const std::string file = testing::TempDir() + "open_in_the_parent." + std::to_string(getpid());
  std::ofstream open(file);
  const Outcome outcome = run_process(shell("ls -l /proc/$$/fd"));
  EXPECT_EQ(outcome.output.find("open_in_the_parent"), std::string::npos) << outcome.output;
  std::filesystem::remove(file);
}

// The grader writes the launcher of one submission while other threads start compilers.
TEST(Process, WhatIsWrittenCanBeRunAtOnce) {
  const std::string file = testing::TempDir() + "program." + std::to_string(getpid());
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i) {
    others.emplace_back([&done] {
      while (!done) run_process(shell("sleep 0.01"));
    });
  }
  const std::string long_text = "#!/bin/sh\nexit 7\n" + std::string(8 << 20, '#');  // takes a while
  int failed = 0;
  for (int round = 0; round < 100; ++round) {
    std::filesystem::remove(file);
    write_program(file, long_text);
    Command command;
    command.arguments = {file};
    failed += run_process(command).exit_code == 7 ? 0 : 1;
  }
  done = true;
  for (std::thread& other : others) other.join();
  EXPECT_EQ(failed, 0);
  std::filesystem::remove(file);
}

TEST(Process, NamesSignalsAndMissingPrograms) {
  const Outcome killed = run_process(shell("kill -SEGV $$"));
  EXPECT_EQ(killed.signal, SIGSEGV);
  EXPECT_EQ(killed.exit_code, 128 + SIGSEGV);
  Command missing;
  missing.arguments = {"no-such-program-here"};
  const Outcome outcome = run_process(missing);
  EXPECT_EQ(outcome.exit_code, 127);
  EXPECT_NE(outcome.output.find("no-such-program-here"), std::string::npos);
}

TEST(Process, EndsTheWholeGroupAtTheLimit) {
  // The grandchild ignores the polite signal and holds the pipe open.
  Command command = shell("sh -c 'trap \"\" TERM; echo $$; sleep 60' & wait");
  command.limit_s = 0.5;
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = run_process(command);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_LT(elapsed.count(), 10);
  const pid_t grandchild = std::stoi(outcome.output);
  for (int tries = 0; tries < 100 && kill(grandchild, 0) == 0; ++tries) usleep(20'000);
  EXPECT_NE(kill(grandchild, 0), 0) << "process " << grandchild << " still runs";
}

TEST(Process, DoesNotWaitForWhatTheChildLeftRunning) {
  const Outcome outcome = run_process(shell("sleep 60 & echo done"));
  EXPECT_EQ(outcome.output, "done\n");
  EXPECT_LT(outcome.seconds, 10);
}

TEST(Process, AnInterruptEndsTheChildAndThrows) {
  // In a process of its own: an interrupt is final.
  EXPECT_EXIT(
      {
        install_interrupt_handlers();
        try {
          run_process(shell("kill -INT $PPID; sleep 60"));
        } catch (const Interrupted& interrupted) {
          _exit(100 + interrupted.signal);
        }
        _exit(1);
      },
      ::testing::ExitedWithCode(100 + SIGINT), "");
}

TEST(Process, FindsPrograms) {
  EXPECT_FALSE(find_program("sh").empty());
  EXPECT_TRUE(find_program("no-such-program-here").empty());
  EXPECT_TRUE(find_program("etc", {"/"}).empty()) << "a folder is no program";
}

}  // namespace
}  // namespace moe::driver
