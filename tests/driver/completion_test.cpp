#include "driver/completion.h"

#include <gtest/gtest.h>

#include <fstream>

#include "driver/process.h"

namespace moe::driver {
namespace {

const std::vector<VerbWords> kVerbs{{"hint", "one step of help", true, {"--help", "--all"}},
                                    {"tune", "m4's tiles", false, {"--help"}},
                                    {"completion", "a script", false, {"--help"}}};
const VerbWords kStageWords{"mN", "test", false, {"--full", "--map"}};

// What bash would offer behind these words.
std::string offered(const std::string& words, int position) {
  Command command;
  command.arguments = {"bash", "-c",
                       completion_script("bash", kVerbs, kStageWords) + "COMP_WORDS=(" + words +
                           "); COMP_CWORD=" + std::to_string(position) +
                           "; _drill; echo \"${COMPREPLY[*]}\""};
  return run_process(command).output;
}

TEST(Completion, BashOffersVerbsStagesAndOptions) {
  EXPECT_EQ(offered("drill hi", 1), "hint\n");
  EXPECT_NE(offered("drill m", 1).find("m2"), std::string::npos);
  EXPECT_EQ(offered("drill m2 --f", 2), "--full\n");
  EXPECT_EQ(offered("drill hint m1", 2), "m1 m10\n");
  EXPECT_EQ(offered("drill hint m2", 2), "m2\n");
  EXPECT_EQ(offered("drill hint m1 --a", 3), "--all\n");
  EXPECT_EQ(offered("drill completion z", 2), "zsh\n");
}

// zsh itself is not there everywhere.
TEST(Completion, ZshHasAllWords) {
  const std::string script = completion_script("zsh", kVerbs, kStageWords);
  for (const char* part : {"#compdef drill", "'hint:one step of help'", R"('tune:m4'\''s tiles')",
                           "hint) choices='m1 ", "--map", "compdef _drill"}) {
    EXPECT_NE(script.find(part), std::string::npos) << part;
  }
  if (find_program("zsh").empty()) GTEST_SKIP() << "no zsh to parse it with";
  Command command;
  command.arguments = {"zsh", "-n", "-c", script};
  EXPECT_EQ(run_process(command).exit_code, 0);
}

TEST(Completion, NoOtherShell) {
  EXPECT_EQ(completion_script("fish", kVerbs, kStageWords), "");
}

}  // namespace
}  // namespace moe::driver
