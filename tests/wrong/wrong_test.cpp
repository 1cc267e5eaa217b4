// Every wrong kernel must be rejected with its own diagnosis, every alternative must pass.
//   wrong_test --kernels build/cpu/wrong --tests build/host/tests [--source DIR]
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "mutant.h"

namespace moe::wrong {
namespace {

namespace fs = std::filesystem;

struct Paths {
  std::string source = DRILL_SOURCE_DIR;
  std::string kernels;
  std::string tests;
};

struct Kernel {
  std::string stem;
  Mutant mutant;
};

std::string run_and_read(const Paths& paths, const Kernel& kernel, bool full) {
  const std::string report = testing::TempDir() + "wrong." + std::to_string(getpid()) + ".jsonl";
  const std::string runner = paths.kernels + "/" + kernel.stem + "." + kernel.mutant.name;
  std::vector<std::string> words = {paths.tests + "/" + kernel.stem + "_test",
                                    "--runner",
                                    runner,
                                    "--side",
                                    "mine",
                                    "--backend",
                                    "cpu",
                                    "--report",
                                    report,
                                    "--case-limit-ms",
                                    "3000"};
  if (full) words.emplace_back("--full");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    unsetenv("GTEST_TOTAL_SHARDS");  // ours, not the stage's
    unsetenv("GTEST_SHARD_INDEX");
    if (freopen("/dev/null", "w", stdout) == nullptr ||
        freopen("/dev/null", "w", stderr) == nullptr) {
      _exit(70);
    }
    execv(arguments[0], arguments.data());
    _exit(70);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::ifstream file(report);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  fs::remove(report);
  return text;
}

// "wrong M2-FLATROW": what the run as a whole says, or else the first case that neither passes nor
// is skipped; "pass" if there is none. The sentence behind it is for people.
std::string diagnosis(const std::string& report, std::string& sentence) {
  std::istringstream lines(report);
  std::string line;
  std::string end = "no verdict";
  while (std::getline(lines, line)) {
    const auto record = nlohmann::json::parse(line);
    const std::string type = record["type"];
    if (type == "end" && end == "no verdict") end = "pass";
    if (type != "case" && type != "diagnosis") continue;
    const std::string state = record["state"];
    const bool failed = state != "pass" && state != "skip";
    if (!failed || (type == "case" && end != "no verdict")) continue;
    sentence = record.value("sentence", "") + " [" +
               record.value(type == "case" ? "name" : "case", "") + "]";
    const std::string code = record.value("code", "");
    end = code.empty() ? state : state + " " + code;
  }
  return end;
}

class WrongKernel : public testing::Test {
 public:
  WrongKernel(const Paths& paths, Kernel kernel) : paths_(paths), kernel_(std::move(kernel)) {}
  void TestBody() override {
    std::string sentence;
    std::string said = diagnosis(run_and_read(paths_, kernel_, kernel_.mutant.full), sentence);
    EXPECT_EQ(said, kernel_.mutant.expect) << "  it said: " << sentence;
  }

 private:
  const Paths& paths_;
  Kernel kernel_;
};

void register_lists(const Paths& paths, const char* folder, const char* suite) {
  std::vector<fs::path> lists;
  for (const auto& entry : fs::directory_iterator(fs::path(paths.source) / "tests" / folder)) {
    const std::string file = entry.path().filename().string();
    if (entry.path().extension() == ".txt" && file != "CMakeLists.txt")
      lists.push_back(entry.path());
  }
  std::sort(lists.begin(), lists.end());
  for (const fs::path& list : lists) {
    for (Mutant& mutant : read_list(list.string())) {
      const Kernel kernel = {list.stem().string(), mutant};
      const std::string name = kernel.stem + "." + mutant.name;
      testing::RegisterTest(
          suite, name.c_str(), nullptr, nullptr, list.c_str(), 1,
          [&paths, kernel]() -> testing::Test* { return new WrongKernel(paths, kernel); });
    }
  }
}

}  // namespace
}  // namespace moe::wrong

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  static moe::wrong::Paths paths;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--kernels") paths.kernels = argv[i + 1];
    if (option == "--tests") paths.tests = argv[i + 1];
    if (option == "--source") paths.source = argv[i + 1];
  }
  if (paths.kernels.empty() || paths.tests.empty()) {
    std::fprintf(stderr, "usage: %s --kernels DIR --tests DIR\n", argv[0]);
    return 2;
  }
  moe::wrong::register_lists(paths, "wrong", "Wrong");
  moe::wrong::register_lists(paths, "alternative", "Alternative");
  return RUN_ALL_TESTS();
}
