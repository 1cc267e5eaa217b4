// Every file of tests/cheats/ is handed in and graded in one class run; each must get its verdict.
//   cheat_test COURSE FOLDER [--jobs N]     FOLDER is emptied
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

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

void grade_all(const std::vector<Cheat>& cheats, const std::string& jobs) {
  fs::remove_all(paths.folder);
  for (const Cheat& cheat : cheats) {
    hand_in(cheat, paths.course, paths.folder / cheat.stem / cheat.name);
  }
  std::ofstream(paths.folder / "grading.toml")
      << "version = 1\nset = \"full\"\n[limits]\ncompile_seconds = 20\ncompile_gib = 1\n"
         "stage_seconds = 60\nmemory_gib = 1\n";
  for (const char* stem : {"m1_align", "m2_grouped_gemm"}) {
    driver::Command command;
    command.arguments = {paths.course / "drill",
                         "grade",
                         "--submissions",
                         paths.folder / stem,
                         "--out",
                         paths.folder / "out" / stem,
                         "--stages",
                         stem,
                         "--grading",
                         paths.folder / "grading.toml",
                         "--secret",
                         "cheaters do not know this",
                         "--jobs",
                         jobs};
    const driver::Outcome outcome = driver::run_process(command);
    std::printf("%s", outcome.output.c_str());
    ASSERT_EQ(outcome.exit_code, 0);
    const Json report =
        Json::parse(driver::read_file(paths.folder / "out" / stem / "results.json"));
    for (const Json& student : report["students"]) {
      results[student["student"].get<std::string>()] = student["stages"][0];
    }
  }
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
  grade_all(cheats, argc > 4 ? argv[4] : "4");
  return RUN_ALL_TESTS();
}
