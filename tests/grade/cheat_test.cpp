// Every file of tests/cheats/ is handed in and graded in one class run; each must get its verdict.
//   cheat_test COURSE FOLDER [--jobs N] [--gpu] [NAME ...]     FOLDER is emptied; NAME: only these
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cheat.h"
#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::grade {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Options {
  fs::path course;
  fs::path folder;
  std::string jobs = "8";
  bool gpu = false;
  std::set<std::string> only;
} options;

using Results = std::map<std::string, Json>;  // by student: the stage
Results results;
Results quick_results;

class CheatTest : public testing::Test {
 public:
  explicit CheatTest(Cheat cheat) : cheat_(std::move(cheat)) {}

  void TestBody() override {
    const Json& stage = results[cheat_.name];
    ASSERT_TRUE(stage.is_object()) << "was not graded";
    SCOPED_TRACE("build " + stage["build_seconds"].dump() + " s, test " +
                 stage["test_seconds"].dump() + " s, attempts " + stage["attempts"].dump() + ", " +
                 stage["verdict"].dump() + ": " + stage["output"].dump().substr(0, 400));
    const std::string verdict = stage["verdict"];
    EXPECT_TRUE(cheat_.may_get(verdict, options.gpu))
        << verdict << ", not " << cheat_.expect << ": " << stage["message"];
    if (!cheat_.quick.empty()) {
      ASSERT_TRUE(quick_results[cheat_.name].is_object()) << "was not graded with the quick set";
      const std::string quick = quick_results[cheat_.name]["verdict"];
      EXPECT_TRUE(quick == cheat_.quick || (options.gpu && cheat_.may_get(quick, true))) << quick;
    }
    const std::string message = stage["message"];
    std::string found = message + "\n" + stage["compiler"].get<std::string>();
    for (const Json& one : stage["cases"]) {
      for (const Json& line : one.value("evidence", Json::array())) {
        found += "\n" + line.get<std::string>();
      }
    }
    EXPECT_NE(found.find(cheat_.says), std::string::npos) << found;
    if (!cheat_.code.empty() && verdict == cheat_.expect) {
      EXPECT_EQ(stage["code"].get<std::string>(), cheat_.code) << message;
    }
    if (cheat_.expect == "PASS") {
      EXPECT_EQ(stage["score"], stage["max_score"]);
    } else {
      // No points for the attack itself: what a right solution beside it earned, at most.
      ASSERT_TRUE(stage["score"].is_number());
      EXPECT_LT(stage["score"].get<double>(), stage["max_score"].get<double>());
      if (cheat_.base == "none") {
        EXPECT_EQ(stage["score"].get<double>(), 0);
      }
    }
  }

 private:
  Cheat cheat_;
};

Results grade_all(const std::vector<Cheat>& cheats,
                  const fs::path& folder,
                  const std::string& jobs,
                  const std::string& set) {
  Results graded;
  fs::remove_all(folder);
  std::set<std::string> stems;
  for (const Cheat& cheat : cheats) {
    hand_in(cheat, options.course, folder / cheat.stem / cheat.name);
    stems.insert(cheat.stem);
  }
  fs::create_directories(folder);
  std::ofstream(folder / "grading.toml")
      << "version = 1\nset = \"" << set
      << "\"\n[limits]\ncompile_seconds = " << (options.gpu ? 60 : 20)
      << "\ncompile_gib = " << (options.gpu ? 4 : 1)
      << "\nstage_seconds = 60\nmemory_gib = " << (options.gpu ? 4 : 1) << "\n";
  for (const std::string& stem : stems) {
    driver::Command command;
    command.arguments = {options.course / "drill",
                         "grade",
                         "--submissions",
                         folder / stem,
                         "--out",
                         folder / "out" / stem,
                         "--stages",
                         stem,
                         "--grading",
                         folder / "grading.toml",
                         "--secret",
                         "cheaters do not know this",
                         "--jobs",
                         jobs};
    if (options.gpu) command.arguments.emplace_back("--gpu");
    const driver::Outcome outcome = driver::run_process(command);
    std::printf("%s", outcome.output.c_str());
    EXPECT_EQ(outcome.exit_code, 0);
    const Json report =
        Json::parse(driver::read_file(folder / "out" / stem / "results.json"), nullptr, false);
    if (report.is_discarded()) continue;
    for (const Json& student : report["students"]) {
      graded[student["student"].get<std::string>()] = student["stages"][0];
    }
  }
  return graded;
}

// What many jobs on few cores made late is judged once more by itself, and told: a verdict that
// stays wrong fails its test.
void grade_the_odd_alone(const std::vector<Cheat>& cheats) {
  std::vector<Cheat> odd;
  for (const Cheat& cheat : cheats) {
    const Json& stage = results[cheat.name];
    if (stage.is_object() && cheat.may_get(stage["verdict"], options.gpu)) continue;
    std::printf("graded again alone: %s, which got %s\n", cheat.name.c_str(),
                stage.dump().substr(0, 2000).c_str());
    odd.push_back(cheat);
  }
  for (auto& [name, stage] : grade_all(odd, options.folder / "again", "1", "full")) {
    results[name] = std::move(stage);
  }
}

void grade_with_the_quick_set(std::vector<Cheat> cheats) {
  const auto untried = [](const Cheat& cheat) { return cheat.quick.empty(); };
  cheats.erase(std::remove_if(cheats.begin(), cheats.end(), untried), cheats.end());
  quick_results = grade_all(cheats, options.folder / "quick", options.jobs, "quick");
}

bool read_options(int argc, char** argv) {
  if (argc < 3) return false;
  options.course = argv[1];
  options.folder = argv[2];
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--gpu") {
      options.gpu = true;
    } else if (word == "--jobs" && i + 1 < argc) {
      options.jobs = argv[++i];
    } else {
      options.only.insert(word);
    }
  }
  return true;
}

// What a hostile class must leave as it was.
TEST(Machine, NothingIsLeftRunning) {
  driver::Command command;
  command.arguments = {"sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"};
  EXPECT_EQ(driver::run_process(command).output.find("sleep 864123 "), std::string::npos);
}

TEST(Machine, OtherFilesAreAsTheyWere) {
  for (const char* path : {"/usr/cheat", "/etc/cheat", "/cheat", "/dev/cheat"}) {
    EXPECT_FALSE(fs::exists(path)) << path;
  }
  EXPECT_TRUE(fs::exists("/usr/bin/ls"));
}

}  // namespace
}  // namespace moe::grade

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  using namespace moe::grade;
  if (!read_options(argc, argv)) {
    std::fprintf(stderr, "usage: cheat_test COURSE FOLDER [--jobs N] [--gpu] [NAME ...]\n");
    return 2;
  }
  std::vector<Cheat> cheats = read_cheats(options.course / "tests" / "cheats");
  const auto left_out = [](const Cheat& cheat) {
    return !options.only.empty() && options.only.count(cheat.name) == 0;
  };
  cheats.erase(std::remove_if(cheats.begin(), cheats.end(), left_out), cheats.end());
  for (const Cheat& cheat : cheats) {
    testing::RegisterTest("Cheat", cheat.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [cheat]() -> testing::Test* { return new CheatTest(cheat); });
  }
  results = grade_all(cheats, options.folder, options.jobs, "full");
  grade_the_odd_alone(cheats);
  grade_with_the_quick_set(cheats);
  return RUN_ALL_TESTS();
}
