// How the build tree makes the runner of a stage: asked of ninja once, then repeated for every
// submission with its own source. Everything but the learner's file is built before.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "driver/course.h"

namespace moe::grade {

struct Recipe {
  const Stage* stage = nullptr;
  std::filesystem::path tree;        // where the link command runs
  std::vector<std::string> compile;  // with the marks below in place of paths
  std::vector<std::string> link;
  std::vector<std::filesystem::path> objects;  // files of the tree that the link command names
  std::vector<std::string> harness;            // symbols that belong to them
  std::vector<std::string> contract;           // symbols that they want from the learner's file
  std::vector<std::string> given;              // symbols that our own file wants
  std::vector<std::filesystem::path> tools;    // of compilers that stand outside of /usr
};

// Marks in a recipe's commands.
inline constexpr const char* kCourseMark = "@COURSE@";  // the clean tree: drills/, emulator/include
inline constexpr const char* kSourceMark = "@SOURCE@";  // mine/STEM.cu
inline constexpr const char* kObjectMark = "@OBJECT@";
inline constexpr const char* kDependsMark = "@DEPENDS@";  // what was read while compiling
inline constexpr const char* kRunnerMark = "@RUNNER@";

// The commands of target STEM.skeleton of a build tree, which must have been built. Throws
// std::runtime_error where ninja's answer is not understood.
Recipe find_recipe(const driver::Course& course, const std::string& tree, const Stage& stage);

// Words of a shell command without expansions: blanks, quotes, backslashes.
std::vector<std::string> shell_words(const std::string& command);

// Where the compilers that a command names keep programs, libraries and headers, if not in /usr: as
// they are named and, where that is a link, as they are. An installation's prefix may be somebody's
// home, so never the prefix itself.
std::vector<std::filesystem::path> tool_folders(const std::vector<std::string>& command);

// A link command without the linker's list of its inputs, which newer CMake asks for in the build
// tree: behind the wall that cannot be written.
std::vector<std::string> without_list_of_inputs(const std::vector<std::string>& command);

// A command with each mark replaced.
std::vector<std::string> filled(std::vector<std::string> words,
                                const std::vector<std::pair<std::string, std::string>>& marks);

}  // namespace moe::grade
