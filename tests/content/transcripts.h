// Commands that a page shows with their output:
//
//   ```console
//   $ ./drill try warp
//   what it prints
//   ```
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace moe::content {

struct Shown {
  int line = 0;           // 1-based, of the command
  std::string command;    // without "$ "
  std::string output;     // up to the next command or the end of the fence
  std::size_t begin = 0;  // of the output in the text
};

std::vector<Shown> transcripts_of(const std::string& text);

// What a command prints, stdout and stderr.
std::string output_of(const std::string& command);

// Every command of the page that starts with `prefix` must print what the page shows. `run` is
// given the command. Returns the commands. With DRILL_UPDATE_CONTENT set the page is written
// instead.
std::vector<std::string> check_transcripts(
    const std::filesystem::path& page,
    const std::string& prefix,
    const std::function<std::string(const std::string& command)>& run);

}  // namespace moe::content
