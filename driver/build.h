// Configuring and building the trees: build/host (tests), build/cpu and build/cuda (runners).
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "driver/backend.h"
#include "driver/course.h"

namespace moe::driver {

struct Build {
  bool done = false;  // false: failed
  double seconds = 0;
  std::string compiler_text;  // what the compiler said, unedited, without the build tool's frame
  std::filesystem::path log;  // everything
};

// The GPUs that build/cuda is configured for, as "90a" or "80;89;90a"; "" where it is not.
std::string configured_architectures(const Course& course);

// Configures build/NAME by the preset of that name where it was not, or was for another folder,
// GPU or compiler.
Build configure_tree(const Course& course, const std::string& tree, const Backend& backend);

// Builds targets of a configured tree; log_name is a file name in the tree. An empty list builds
// everything.
Build build_targets(const Course& course,
                    const std::string& tree,
                    const std::vector<std::string>& targets,
                    const std::string& log_name);

// Builds the runner of one stage and side. Unlike ninja, it also notices that a source was replaced
// by a file with an older time (a backup that was moved back, for example).
Build build_runner(const Course& course,
                   const std::string& tree,
                   const Stage& stage,
                   const std::string& side);

std::filesystem::path runner_path(const Course& course,
                                  std::string_view tree,
                                  const Stage& stage,
                                  std::string_view side);
std::filesystem::path test_path(const Course& course, const Stage& stage);

// The compilers' own text: ninja's progress, its FAILED line and the command after it left out.
std::string compiler_text_of(std::string_view ninja_output);

// How many errors (or warnings) compilers, assembler and linker report in a text.
std::size_t count_diagnostics(std::string_view text, std::string_view kind);

}  // namespace moe::driver
