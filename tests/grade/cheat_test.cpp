// Every file of tests/cheats/ is handed in and graded in one class run; each must get its verdict.
//   cheat_test COURSE FOLDER [--jobs N]     FOLDER is emptied
#include <gtest/gtest.h>

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

struct Paths {
  fs::path course;
  fs::path folder;
} paths;

std::map<std::string, Json> results;  // by student: the stage

class CheatTest : public testing::Test {
 public:
  explicit CheatTest(Cheat cheat) : cheat_(std::move(cheat)) {}

  void TestBody() override {
    const Json& stage = results[cheat_.name];
    ASSERT_TRUE(stage.is_object()) << "was not graded";
    SCOPED_TRACE("build " + stage["build_seconds"].dump() + " s, test " +
                 stage["test_seconds"].dump() + " s, attempts " + stage["attempts"].dump() + ", " +
                 stage["verdict"].dump() + ": " + stage["output"].dump().substr(0, 400));
    EXPECT_EQ(stage["verdict"].get<std::string>(), cheat_.expect) << stage["message"];
    const std::string message = stage["message"];
    std::string found = message + "\n" + stage["compiler"].get<std::string>();
    for (const Json& one : stage["cases"]) {
      for (const Json& line : one.value("evidence", Json::array())) {
        found += "\n" + line.get<std::string>();
      }
    }
    EXPECT_NE(found.find(cheat_.says), std::string::npos) << found;
    if (!cheat_.code.empty()) {
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

void grade_all(const std::vector<Cheat>& cheats, const fs::path& folder, const std::string& jobs) {
  fs::remove_all(folder);
  std::set<std::string> stems;
  for (const Cheat& cheat : cheats) {
    hand_in(cheat, paths.course, folder / cheat.stem / cheat.name);
    stems.insert(cheat.stem);
  }
  std::ofstream(folder / "grading.toml")
      << "version = 1\nset = \"full\"\n[limits]\ncompile_seconds = 20\ncompile_gib = 1\n"
         "stage_seconds = 60\nmemory_gib = 1\n";
  for (const std::string& stem : stems) {
    driver::Command command;
    command.arguments = {paths.course / "drill",
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
    const driver::Outcome outcome = driver::run_process(command);
    std::printf("%s", outcome.output.c_str());
    ASSERT_EQ(outcome.exit_code, 0);
    const Json report = Json::parse(driver::read_file(folder / "out" / stem / "results.json"));
    for (const Json& student : report["students"]) {
      results[student["student"].get<std::string>()] = student["stages"][0];
    }
  }
}

// What many jobs on few cores made late is judged once more by itself, and told: a verdict that
// stays wrong fails its test.
void grade_the_odd_alone(const std::vector<Cheat>& cheats) {
  std::vector<Cheat> odd;
  for (const Cheat& cheat : cheats) {
    const Json& stage = results[cheat.name];
    if (stage.is_object() && stage["verdict"] == cheat.expect) continue;
    std::printf("graded again alone: %s, which got %s\n", cheat.name.c_str(),
                stage.dump().substr(0, 2000).c_str());
    odd.push_back(cheat);
  }
  if (!odd.empty()) grade_all(odd, paths.folder / "again", "1");
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
  if (argc < 3) {
    std::fprintf(stderr, "usage: cheat_test COURSE FOLDER [--jobs N]\n");
    return 2;
  }
  paths = {argv[1], argv[2]};
  const std::vector<Cheat> cheats = read_cheats(paths.course / "tests" / "cheats");
  for (const Cheat& cheat : cheats) {
    testing::RegisterTest("Cheat", cheat.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [cheat]() -> testing::Test* { return new CheatTest(cheat); });
  }
  grade_all(cheats, paths.folder, argc > 4 ? argv[4] : "8");
  grade_the_odd_alone(cheats);
  return RUN_ALL_TESTS();
}
