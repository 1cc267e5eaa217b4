// content/start.md shows what the kernels of content/start.cu print on the emulator.
#include <gtest/gtest.h>

#include <regex>
#include <sstream>

#include "content/transcripts.h"

namespace moe::content {
namespace {

TEST(Start, PageShowsWhatEveryIdeaPrints) {
  const std::string prefix = "./drill try ";
  const std::vector<std::string> shown = check_transcripts(
      std::string(DRILL_SOURCE_DIR) + "/content/start.md", prefix, [&](const std::string& command) {
        // A compiler cache may name files from the build tree.
        return std::regex_replace(
            output_of(std::string("'") + START_PROGRAM + "' " + command.substr(prefix.size())),
            std::regex(R"(\.\./\.\./)"), "");
      });
  std::vector<std::string> ideas;
  std::istringstream names(output_of(std::string("'") + START_PROGRAM + "'"));
  for (std::string name; std::getline(names, name);) ideas.push_back(prefix + name);
  EXPECT_EQ(shown, ideas);
  EXPECT_GT(ideas.size(), 5u);
}

}  // namespace
}  // namespace moe::content
