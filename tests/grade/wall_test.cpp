// What a confined program can reach.
#include <gtest/gtest.h>

#include "driver/grade/confine.h"
#include "driver/grade/guard.h"
#include "grade_test.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;

class WallTest : public Folder {
 protected:
  driver::Outcome confined(const std::string& script, const Limits& limits = {0, 0, 20, 64}) {
    Room room;
    room.writable = {root_ / "box"};
    room.folder = root_ / "box";
    fs::create_directories(root_ / "box");
    confinement_.hand_over(root_ / "box", 1);
    driver::Command command;
    command.arguments = confinement_.wrap({"sh", "-c", script}, room, limits, 1);
    command.limit_s = 30;
    return driver::run_process(command);
  }
  void SetUp() override {
    Folder::SetUp();
    if (find_confinement(root_).wall() != Wall::kBubblewrap) {
      GTEST_SKIP() << "bubblewrap does not work here";
    }
  }

  Confinement confinement_{Wall::kBubblewrap};
};

TEST_F(WallTest, OnlyItsOwnFilesAreThere) {
  write("secret", "secret");
  const std::string secret = (root_ / "secret").string();
  EXPECT_NE(confined("cat " + secret).exit_code, 0);
  EXPECT_NE(confined("cat /etc/passwd").exit_code, 0);
  EXPECT_NE(confined("ls /root /home").exit_code, 0);
  EXPECT_NE(confined("touch /usr/x").exit_code, 0);
  EXPECT_NE(confined("touch /x").exit_code, 0);
  EXPECT_EQ(confined("touch made && touch /tmp/own").exit_code, 0);
  EXPECT_TRUE(fs::exists(root_ / "box" / "made"));
  EXPECT_FALSE(fs::exists("/tmp/own"));
}

TEST_F(WallTest, NoNetworkAndNoOtherProcess) {
  EXPECT_EQ(confined("tail -n +3 /proc/net/dev | grep -v ' lo:'").output, "");
  EXPECT_NE(confined("kill -0 " + std::to_string(getpid())).exit_code, 0);
  EXPECT_EQ(confined("ls -d /proc/[0-9]* | wc -l").output.substr(0, 1), "4")
      << "bwrap, sh, ls and wc";
}

TEST_F(WallTest, NothingOfTheEnvironmentComesIn) {
  setenv("DRILL_SECRET", "42", 1);
  const std::string inside = confined("env").output;
  unsetenv("DRILL_SECRET");
  EXPECT_EQ(inside.find("DRILL_SECRET"), std::string::npos) << inside;
}

TEST_F(WallTest, OnlyAGpusRunnerIsToldOfTheGpu) {
  setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  Room room;
  for (const Wall wall : {Wall::kBubblewrap, Wall::kUser}) {
    for (const bool gpu : {false, true}) {
      room.gpu = gpu;
      std::string words;
      for (const std::string& word : Confinement(wall).wrap({"env"}, room, {0, 0, 20, 64}, 1)) {
        words += word + " ";
      }
      EXPECT_EQ(words.find("CUDA_VISIBLE_DEVICES") != std::string::npos, gpu) << words;
    }
  }
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_F(WallTest, ALibraryOfTheSystemMayBeNamed) {
  Room room;
  room.readable = {"/usr/local/cuda/lib64/libcudart_static.a", "/usr/bin/env"};
  driver::Command command;
  command.arguments = confinement_.wrap({"true"}, room, {0, 0, 20, 64}, 1);
  const driver::Outcome outcome = driver::run_process(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
}

TEST_F(WallTest, WhatIsLeftRunningDies) {
  confined("setsid sleep 864122 >/dev/null 2>&1 & sleep 0.2");
  // The kernel ends the process namespace after bwrap has exited, so the last of it may take a
  // moment.
  const std::string left =
      "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q '[s]leep 864122'";
  EXPECT_NE(shell("for i in $(seq 100); do " + left + " || exit 1; sleep 0.1; done").exit_code, 0);
}

TEST_F(WallTest, FilesHaveALimit) {
  EXPECT_NE(confined("head -c 3000000 /dev/zero > big", {0, 1 << 20, 20, 64}).exit_code, 0);
  EXPECT_LE(fs::file_size(root_ / "box" / "big"), std::uintmax_t{1} << 20);
}

TEST_F(WallTest, TheGuardEndsWhatIsTooLarge) {
  fs::create_directories(root_ / "box");
  Room room;
  room.writable = {root_ / "box"};
  driver::Command command;
  command.arguments = {"sh", "-c", "\"$@\"; true", "sh"};
  for (const std::string& word : confinement_.wrap(
           {"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 30 & done; wait"}, room, {}, 1)) {
    command.arguments.push_back(word);
  }
  command.limit_s = 20;
  Guard guard(0, 6);
  driver::Watcher watcher;
  watcher.on_start = [&guard](pid_t process) { guard.watch(process); };
  watcher.on_tick = [&guard] { guard.look(); };
  const driver::Outcome outcome = driver::run_process(command, watcher);
  EXPECT_TRUE(guard.processes_exceeded());
  EXPECT_LT(outcome.seconds, 10);
  EXPECT_EQ(outcome.exit_code, 0) << "the test program itself is left alone";
}

}  // namespace
}  // namespace moe::grade
