#include "course_copy.h"

#include <chrono>
#include <fstream>
#include <regex>
#include <set>
#include <stdexcept>

#include "driver/process.h"
#include "driver/terminal.h"

namespace moe::driver {
namespace {

namespace fs = std::filesystem;

bool is_generated(const fs::path& relative) {
  const std::string top = relative.begin()->string();
  return top == "build" || top == ".drill" || top == ".git" || top == ".cache";
}

std::set<fs::path> files_below(const fs::path& root) {
  std::set<fs::path> files;
  for (fs::recursive_directory_iterator entry(root), end; entry != end; ++entry) {
    const fs::path relative = entry->path().lexically_relative(root);
    if (is_generated(relative)) {
      entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && !entry->is_symlink()) {
      files.insert(relative);
    }
  }
  return files;
}

// Keeps the time of an unchanged file, so that nothing is compiled again for it.
void copy_if_different(const fs::path& from, const fs::path& to) {
  if (fs::exists(to) && read_file(from) == read_file(to)) return;
  fs::create_directories(to.parent_path());
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
}

std::string replaced(const std::string& text, const std::string& pattern, const std::string& by) {
  return std::regex_replace(text, std::regex(pattern), by);
}

}  // namespace

CourseCopy::CourseCopy(fs::path source, fs::path copy)
    : source_(std::move(source)), copy_(std::move(copy)) {
  fs::create_directories(copy_);
  const std::set<fs::path> wanted = files_below(source_);
  for (const fs::path& file : files_below(copy_)) {
    if (wanted.count(file) == 0) fs::remove(copy_ / file);
  }
  for (const fs::path& file : wanted) copy_if_different(source_ / file, copy_ / file);
  fs::remove_all(copy_ / ".drill");
}

std::string CourseCopy::read(const std::string& file) const {
  return read_file(copy_ / file);
}

void CourseCopy::write(const std::string& file, const std::string& text) const {
  if (read(file) == text) return;
  std::ofstream(copy_ / file, std::ios::binary) << text;
}

void CourseCopy::write_old(const std::string& file, const std::string& text) const {
  std::ofstream(copy_ / file, std::ios::binary) << text;
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(copy_ / file, now - std::chrono::hours(24 * 365));
}

CourseCopy::Transcript CourseCopy::run_shell(const std::string& script) const {
  Command command;
  command.arguments = {"sh", "-c", script};
  command.folder = copy_;
  // DRILL_ROOT: the self-test, which runs this, has that of the course it checks.
  command.environment = {"LC_ALL=C", "NO_COLOR=1", "DRILL_SEED=1", "DRILL_ROOT=" + copy_.string()};
  const Outcome outcome = run_process(command);
  return {outcome.output, outcome.exit_code};
}

CourseCopy::Transcript CourseCopy::run(const std::string& arguments) const {
  Transcript transcript = run_shell("exec ./drill " + arguments);
  transcript.text = normalised("$ drill " + arguments + "\n" + transcript.text, copy_);
  return transcript;
}

std::string normalised(const std::string& text, const std::string& root) {
  std::string result;
  for (std::string line : split_lines(text)) {
    // Excerpts and context of a compiler's message differ between its versions.
    static const std::regex kExcerpt(R"( *[0-9]* \| .*| *\| .*)");
    static const std::regex kContext(
        R"(.*: (In|At|in) .*:|.* note: .*|.*(required from|from ).*:[0-9]+.*)");
    const bool once = std::regex_match(line, std::regex("building the .* \\(once.*"));
    if (once || std::regex_match(line, kExcerpt) || std::regex_match(line, kContext)) continue;
    for (std::size_t at; (at = line.find(root)) != std::string::npos;) {
      line.replace(at, root.size(), "ROOT");
    }
    line = replaced(line, R"([0-9]+\.[0-9] s\b)", "N s");
    line = replaced(line, R"(seed [0-9]+)", "seed N");
    line = replaced(line, R"((\.(cu|h|cpp)):[0-9]+)", "$1:N");
    line = replaced(line, R"((\.(cu|h|cpp):N):[0-9]+)", "$1:N");
    line = replaced(line, "0x[0-9a-f]+", "0xN");
    line = replaced(line, "^[A-Z][a-z]+day [0-9]{4}-[0-9]{2}-[0-9]{2}$", "DAY");
    line = replaced(line, "^  [0-9]{2}:[0-9]{2}  ", "  HH:MM  ");
    // Which stages there are beside m2 is no matter of m2's transcript.
    line = replaced(line, "^next   drill m[0-9]+$", "next   drill mN");
    // Blocks run in parallel: which one is caught first is chance.
    line = replaced(line, R"(block \([0-9,]+\) thread \([0-9,]+\))", "block (B) thread (T)");
    result += line + "\n";
  }
  return result;
}

}  // namespace moe::driver
