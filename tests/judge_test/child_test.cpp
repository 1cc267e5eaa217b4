// A runner that cannot be run is the machine's fault: no verdict on the code in it.
#include "judge/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace moe::judge {
namespace {

void ask(const std::string& runner) {
  Child child(runner);
  child.ask({}, nullptr, nullptr, 1'000);
}

TEST(ChildDeathTest, ARunnerThatIsNotThereIsNoVerdict) {
  EXPECT_DEATH(ask("/no/such/runner"), "cannot run /no/such/runner: No such file or directory");
}

TEST(ChildDeathTest, ARunnerThatSomebodyWritesIsNoVerdict) {
  const std::string file = testing::TempDir() + "busy_runner." + std::to_string(getpid());
  std::ofstream(file) << "#!/bin/sh\nexit 0\n";
  chmod(file.c_str(), 0755);
  const int writer = open(file.c_str(), O_WRONLY | O_CLOEXEC);
  EXPECT_DEATH(ask(file), "cannot run .*busy_runner.*: Text file busy");
  close(writer);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace moe::judge
