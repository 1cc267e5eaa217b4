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

// In ms, for a case. The emulator calls waiting without progress a hang after 2 s of CPU time,
// which may be long on a busy machine; a loop that waits for nothing needs the limit.
std::string limit_of(const Mutant& mutant) {
  return mutant.expect == "hang" ? "8000" : "120000";
}

// The report of a run of one case, or of all where `case_name` is empty.
std::string run_and_read(const Paths& paths,
                         const Kernel& kernel,
                         const std::string& case_name,
                         int seed = 1) {
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
                                    "--seed",
                                    std::to_string(seed),
                                    "--case-limit-ms",
                                    limit_of(kernel.mutant)};
  if (kernel.mutant.full) words.emplace_back("--full");
  if (!case_name.empty()) words.insert(words.end(), {"--case", case_name});
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
// is skipped; "pass" if there is none. Behind it what the run can't tell from it.
struct Said {
  std::vector<std::string> words = {"no verdict"};
  std::string sentence;  // for people
};

Said said_by(const std::string& report) {
  Said said;
  std::istringstream lines(report);
  std::string line;
  while (std::getline(lines, line)) {
    const auto record = nlohmann::json::parse(line);
    const std::string type = record["type"];
    if (type == "end" && said.words[0] == "no verdict") said.words = {"pass"};
    if (type != "case" && type != "diagnosis") continue;
    const std::string state = record["state"];
    const bool failed = state != "pass" && state != "skip";
    if (!failed || (type == "case" && said.words[0] != "no verdict")) continue;
    said.sentence = record.value("sentence", "") + " [" +
                    record.value(type == "case" ? "name" : "case", "") + "]";
    const std::string code = record.value("code", "");
    said.words = {code.empty() ? state : state + " " + code};
    for (const auto& other : record.value("or", nlohmann::json::array())) {
      said.words.push_back(state + " " + other.value("code", ""));
    }
  }
  return said;
}

class WrongKernel : public testing::Test {
 public:
  WrongKernel(const Paths& paths, Kernel kernel) : paths_(paths), kernel_(std::move(kernel)) {}
  void TestBody() override {
    const Mutant& mutant = kernel_.mutant;
    if (!mutant.check.empty()) {
      const Said alone = said_by(run_and_read(paths_, kernel_, mutant.check));
      EXPECT_NE(std::find(alone.words.begin(), alone.words.end(), mutant.expect), alone.words.end())
          << "  " << mutant.check << " alone said: " << alone.words[0] << ", " << alone.sentence;
      const bool settled = alone.words.size() == 1;
      if (settled) return;
    }
    const Said all = said_by(run_and_read(paths_, kernel_, ""));
    std::vector<std::string> wanted = {mutant.expect};
    if (!mutant.or_else.empty()) wanted.push_back(mutant.or_else);
    EXPECT_EQ(all.words, wanted) << "  it said: " << all.sentence;
  }

 private:
  const Paths& paths_;
  Kernel kernel_;
};

// `--case NAME --seed S` repeats a failure with all that is said of it.
class Repeat : public testing::Test {
 public:
  explicit Repeat(const Paths& paths) : paths_(paths) {}
  void TestBody() override {
    const auto failure = first_failure(17);
    ASSERT_FALSE(failure.is_null());
    EXPECT_EQ(failure, first_failure(17));
    auto other = first_failure(18);
    other["seed"] = failure["seed"];
    EXPECT_NE(failure, other) << "the seed has no effect";
  }

 private:
  nlohmann::json first_failure(int seed) {
    Kernel kernel = {"m2_grouped_gemm", {}};
    kernel.mutant.name = "last_row_of_a_block";
    std::istringstream lines(run_and_read(paths_, kernel, "random/tokens", seed));
    for (std::string line; std::getline(lines, line);) {
      auto record = nlohmann::json::parse(line);
      if (record["type"] != "case" || record["state"] != "wrong") continue;
      record.erase("seconds");
      return record;
    }
    return {};
  }

  const Paths& paths_;
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
  testing::RegisterTest("Repeat", "CaseAndSeed", nullptr, nullptr, __FILE__, __LINE__,
                        []() -> testing::Test* { return new moe::wrong::Repeat(paths); });
  return RUN_ALL_TESTS();
}
