#include "content/transcripts.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace moe::content {

std::vector<Shown> transcripts_of(const std::string& text) {
  std::vector<Shown> shown;
  bool inside = false;
  std::size_t start = 0;
  for (int line = 1; start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string words = text.substr(start, end - start);
    if (words.starts_with("```")) {
      inside = words == "```console";
    } else if (inside && words.starts_with("$ ")) {
      shown.push_back({line, words.substr(2), "", end + 1});
    } else if (inside && !shown.empty()) {
      shown.back().output += words + "\n";
    }
    start = end + 1;
  }
  return shown;
}

std::string output_of(const std::string& command) {
  std::string output;
  std::FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return "cannot start " + command;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    output.append(buffer, count);
  }
  pclose(pipe);
  return output;
}

std::vector<std::string> check_transcripts(
    const std::filesystem::path& page,
    const std::string& prefix,
    const std::function<std::string(const std::string& command)>& run) {
  std::ifstream file(page);
  std::stringstream stream;
  stream << file.rdbuf();
  std::string text = stream.str();
  const bool update = std::getenv("DRILL_UPDATE_CONTENT") != nullptr;
  const std::vector<Shown> all = transcripts_of(text);
  std::vector<std::string> commands;
  for (auto one = all.rbegin(); one != all.rend(); ++one) {
    if (!one->command.starts_with(prefix)) continue;
    commands.insert(commands.begin(), one->command);
    const std::string output = run(one->command);
    if (update) {
      text.replace(one->begin, one->output.size(), output);
    } else {
      EXPECT_EQ(one->output, output)
          << page.string() << ":" << one->line << ": stale; DRILL_UPDATE_CONTENT=1 writes it";
    }
  }
  if (update) std::ofstream(page, std::ios::binary) << text;
  return commands;
}

}  // namespace moe::content
